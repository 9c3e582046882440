"""Robots of others' making: do they load, move as in MuJoCo, and differentiate right?"""
