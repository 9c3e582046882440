// Transmissions of every kind: the rate of a length, the adjoint of lengths and rates, lanes, no allocation. That they are
// MuJoCo's is checked in tests/revolute_engine/test_transmissions.py.
#include "allocation.hpp"
#include "models.hpp"
#include "revolute/stages/transmission.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

constexpr Point nowhere = {0, 0, 0};

void append(Doubles& array, const Point& a) { array.insert(array.end(), {a.x, a.y, a.z}); }
void append_turn(Doubles& array, const Point& turn) {
  const Quaternion<double> q = exponential(turn);
  array.insert(array.end(), {q.w, q.x, q.y, q.z});
}

struct End {
  int body;
  Point at;
};

// two_trees() with a fixed tendon, paths between its bodies, and actuators on all that transmissions know.
class TransmissionMaker {
 public:
  MujocoArrays arrays = two_trees();

  TransmissionMaker() {
    arrays.act_tendon.assign(arrays.nu, -1);
    arrays.act_trn.assign(arrays.nu, -1);
  }
  void add_tendon() {
    for (Doubles* array : {&arrays.ten_stiffness, &arrays.ten_damping, &arrays.ten_armature,
                           &arrays.ten_margin, &arrays.ten_frictionloss, &arrays.ten_length0})
      array->push_back(0);
    for (Doubles* array : {&arrays.ten_lengthspring, &arrays.ten_range, &arrays.ten_actfrcrange})
      array->insert(array->end(), {0, 0});
    for (Ints* array : {&arrays.ten_limited, &arrays.ten_actfrclimited}) array->push_back(0);
    arrays.ten_jointadr.push_back(int(arrays.ten_joint.size()));
    arrays.ten_jointnum.push_back(0);
    arrays.ten_segmentadr.push_back(int(arrays.seg_body1.size()));
    arrays.ten_segmentnum.push_back(0);
  }
  void add_joint(int joint, double coefficient) {
    arrays.ten_joint.push_back(joint);
    arrays.ten_coef.push_back(coefficient);
    ++arrays.ten_jointnum.back();
  }
  void add_segment(End a, End b, double divisor, int wrap = -1) {
    arrays.seg_body1.push_back(a.body);
    arrays.seg_body2.push_back(b.body);
    append(arrays.seg_pos1, a.at);
    append(arrays.seg_pos2, b.at);
    arrays.seg_divisor.push_back(divisor);
    arrays.seg_wrap.push_back(wrap);
    ++arrays.ten_segmentnum.back();
  }
  int add_wrap(bool cylinder, End centre, double radius, bool sided, End side) {
    arrays.wrap_cylinder.push_back(cylinder);
    arrays.wrap_body.push_back(centre.body);
    append(arrays.wrap_pos, centre.at);
    append_turn(arrays.wrap_quat, {0.3, 0.2, -0.1});
    arrays.wrap_radius.push_back(radius);
    arrays.wrap_sidebody.push_back(sided ? side.body : -1);
    append(arrays.wrap_side, side.at);
    return int(arrays.wrap_body.size()) - 1;
  }
  void add_actuator(TransmissionType type, int joint, bool in_parent, End site, End reference,
                    bool referred) {
    MujocoArrays& a = arrays;
    a.act_dof.push_back(-1);
    a.act_qpos.push_back(-1);
    a.act_gear.push_back(0.7);
    append(a.act_gain, {1, 0, 0});
    append(a.act_bias, nowhere);
    for (Ints* flag : {&a.act_ctrllimited, &a.act_forcelimited, &a.act_dyn, &a.act_adr, &a.act_early,
                       &a.act_actlimited, &a.act_musclegain, &a.act_musclebias})
      flag->push_back(0);
    for (Doubles* range : {&a.act_ctrlrange, &a.act_forcerange, &a.act_actrange, &a.act_lengthrange})
      range->insert(range->end(), {0, 0});
    append(a.act_dynprm, {1, 1, 1});
    for (Doubles* prm : {&a.act_musclegainprm, &a.act_musclebiasprm}) prm->resize(prm->size() + 9, 1.0);
    a.act_tendon.push_back(-1);
    a.act_trn.push_back(int(a.trn_type.size()));
    a.trn_type.push_back(int(type));
    a.trn_joint.push_back(joint);
    a.trn_inparent.push_back(in_parent);
    a.trn_body.push_back(site.body);
    a.trn_refbody.push_back(referred ? reference.body : -1);
    append(a.trn_pos, site.at);
    append_turn(a.trn_quat, {0.2, -0.5, 0.4});
    append(a.trn_refpos, reference.at);
    append_turn(a.trn_refquat, {-0.1, 0.3, 0.6});
    a.trn_gear.insert(a.trn_gear.end(), {0.7, -0.4, 0.9, 0.3, 0.5, -0.2});
    a.trn_rod.push_back(4.0);
    ++a.nu;
  }
};

MujocoArrays every_kind() {
  TransmissionMaker m;
  const MujocoArrays& a = m.arrays;
  const int last = a.nbody - 1;
  int free = -1, ball = -1;
  std::vector<int> scalar;
  for (int j = 0; j < a.njnt; ++j) {
    if (a.jnt_type[j] == int(JointType::free)) free = j;
    if (a.jnt_type[j] == int(JointType::ball)) ball = j;
    if (a.jnt_type[j] > int(JointType::ball)) scalar.push_back(j);
  }
  const End base = {1, {0.1, 0.05, 0}}, middle = {2, {0.2, 0.1, 0.05}}, tip = {last, {0.1, -0.05, 0.2}},
            ground = {0, {0.6, -0.4, 0.9}};
  m.add_tendon();
  for (std::size_t i = 0; i < scalar.size(); ++i) m.add_joint(scalar[i], 0.5 + 0.7 * double(i));
  m.add_tendon();
  m.add_segment(base, tip, 1);
  m.add_segment(middle, ground, 2);
  // bends that are large enough to be met: on the way between two bodies
  for (bool cylinder : {false, true}) {
    m.add_tendon();
    m.add_segment(ground, tip, 1, m.add_wrap(cylinder, {last - 1, {0.05, 0.1, 0.1}}, 0.25, false, ground));
    for (double side : {-2.0, 2.0})
      m.add_segment(ground, tip, 1.5,
                    m.add_wrap(cylinder, {1, {0.3, 0.1, 0.2}}, 0.1, true, {1, {side, side, 1}}));
  }
  m.add_actuator(TransmissionType::ball, ball, false, base, base, false);
  m.add_actuator(TransmissionType::ball, ball, true, base, base, false);
  m.add_actuator(TransmissionType::free, free, false, base, base, false);
  m.add_actuator(TransmissionType::free, free, true, base, base, false);
  m.add_actuator(TransmissionType::site, -1, false, tip, base, false);
  m.add_actuator(TransmissionType::site, -1, false, tip, base, true);
  m.add_actuator(TransmissionType::site, -1, false, middle, base, true);
  m.add_actuator(TransmissionType::slider_crank, -1, false, tip, middle, true);
  return m.arrays;
}

// in: tangent of qpos, qvel, gears; out: lengths, rates and the entries of J.
struct Stage {
  const ModelStorage& storage;
  Doubles qpos;

  const Model& model() const { return storage.model(); }
  int n_in() const { return 2 * model().nv + model().nu; }
  int n_out() const { return 2 * model().ntransmission + model().ntransmission_entry; }

  template <class Real>
  struct At {
    Owned<Parameters<Real>> parameters;
    Owned<Kinematics<Real>> kinematics;
    Owned<Transmissions<Real>> transmissions;
    std::vector<Real> qpos;

    explicit At(const Model& model)
        : parameters(model), kinematics(model), transmissions(model), qpos(model.nq) {}
  };
  template <class Real>
  void run(const Real* in, At<Real>& at) const {
    load_defaults(storage, *at.parameters);
    std::copy_n(in + 2 * model().nv, model().nu, at.parameters->gear);
    const std::vector<Real> start(qpos.begin(), qpos.end());
    displace(model(), start.data(), in, at.qpos.data());
    kinematics(model(), *at.parameters, at.qpos.data(), in + model().nv, *at.kinematics);
    transmissions(model(), *at.parameters, *at.kinematics, at.qpos.data(), in + model().nv,
                  *at.transmissions);
  }
  template <class Real>
  void operator()(const Real* in, Real* out) const {
    At<Real> at(model());
    run(in, at);
    const int n = model().ntransmission;
    std::copy_n(at.transmissions->length, n, out);
    std::copy_n(at.transmissions->velocity, n, out + n);
    std::copy_n(at.transmissions->J, model().ntransmission_entry, out + 2 * n);
  }
};
struct StageAdjoint {
  const Stage& of;
  template <class Real>
  void operator()(const Real* in, const Real* out_bar, Real* in_bar) const {
    const Model& model = of.model();
    Stage::At<Real> at(model);
    of.run(in, at);
    Owned<TransmissionsCotangent<Real>> bar(model);
    Owned<KinematicsCotangent<Real>> kin_bar(model);
    Owned<Parameters<Real>> parameters_bar(model);
    kin_bar->clear(model);
    parameters_bar->clear(model);
    const int n = model.ntransmission;
    std::copy_n(out_bar, n, bar->length);
    std::copy_n(out_bar + n, n, bar->velocity);
    std::copy_n(out_bar + 2 * n, model.ntransmission_entry, bar->J);
    transmissions_adjoint(model, *at.parameters, *at.kinematics, at.qpos.data(), in + model.nv,
                          *at.transmissions, *bar, in_bar, in_bar + model.nv, *kin_bar, *parameters_bar);
    kinematics_adjoint(model, *at.parameters, *at.kinematics, *kin_bar, in_bar, *parameters_bar);
    for (int a = 0; a < model.nu; ++a) in_bar[2 * model.nv + a] += parameters_bar->gear[a];
  }
};

// Bends of all paths at a state.
int bends(const Stage& stage, const Doubles& in) {
  const Model& model = stage.model();
  Stage::At<double> at(model);
  stage.run(in.data(), at);
  const revolute::detail::FramesAtRest<double> frames = {model, *at.kinematics};
  int count = 0;
  for (int t = 0; t < model.ntendon; ++t) {
    const Transmission& path = model.transmissions[t];
    for (int s = path.first; path.type == TransmissionType::path && s < path.first + path.count; ++s) {
      const auto forces = revolute::detail::segment_forces(model, model.path_segments[s], frames);
      if (forces.count == 4 && dot(forces.force[2].f, forces.force[2].f) > 0) ++count;
    }
  }
  return count;
}

void adjoint_lanes_and_allocation() {
  const MujocoArrays arrays = every_kind();
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  Random random(811);
  int bent = 0;
  for (int trial = 0; trial < 12; ++trial) {
    const Stage stage{storage, random_qpos(storage, arrays, random, 0.5)};
    const StageAdjoint adjoint{stage};
    Doubles in(model.nv, 0.0);
    const Doubles rest = random.normals(model.nv + model.nu);
    in.insert(in.end(), rest.begin(), rest.end());
    bent += bends(stage, in);
    check_adjoint("transmissions", random, in, stage.n_out(), stage, adjoint, smooth,
                  {{"qpos", 0, model.nv}, {"qvel", model.nv, model.nv}, {"gear", 2 * model.nv, model.nu}});
    const std::vector<Doubles> environments = environments_around(random, in, 0.4);
    check_lanes("transmissions", environments, stage.n_out(), stage);
    check_adjoint_lanes("transmissions", random, environments, stage.n_out(), adjoint);

    Stage::At<double> at(model);
    stage.run(in.data(), at);
    check_no_allocation("transmissions", [&] {
      transmissions(model, *at.parameters, *at.kinematics, at.qpos.data(), in.data() + model.nv,
                    *at.transmissions);
    });
  }
  CHECK(bent > 3);
}

// Of paths, fixed tendons and slider-cranks J is the derivative of the length.
void rates_are_those_of_the_lengths() {
  const MujocoArrays arrays = every_kind();
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  Random random(812);
  const Stage stage{storage, random_qpos(storage, arrays, random, 0.5)};
  Doubles in(2 * model.nv, 0.0), qvel = random.normals(model.nv);
  in.insert(in.end(), model.nu, 1.0);
  std::copy(qvel.begin(), qvel.end(), in.begin() + model.nv);
  const auto outputs = [&](double step) {
    Doubles at = in, out(stage.n_out());
    for (int k = 0; k < model.nv; ++k) at[k] = step * qvel[k];
    stage(at.data(), out.data());
    return out;
  };
  const double step = 1e-5;
  const Doubles here = outputs(0), up = outputs(step), down = outputs(-step);
  int compared = 0;
  for (int t = 0; t < model.ntransmission; ++t) {
    const TransmissionType type = model.transmissions[t].type;
    if (type != TransmissionType::joints && type != TransmissionType::path &&
        type != TransmissionType::slider_crank)
      continue;
    CHECK_CLOSE(here[model.ntransmission + t], (up[t] - down[t]) / (2 * step), 1e-7);
    ++compared;
  }
  CHECK(compared == model.ntendon + 1);
}

}  // namespace

int main() {
  return run({{"rates", rates_are_those_of_the_lengths},
              {"adjoint, lanes, allocation", adjoint_lanes_and_allocation}});
}
