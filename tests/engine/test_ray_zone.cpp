// Rays and the zones of touch sensors, against many points along the ray.
#include "check.hpp"
#include "revolute/collision/ray_zone.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

using Point = Vector3<double>;

// How deep a point lies in a zone, negative outside.
double depth(int shape, const double* size, const Point& p) {
  const double beside = std::sqrt(p.x * p.x + p.y * p.y);
  switch (shape) {
    case 2:
      return size[0] - std::sqrt(dot(p, p));
    case 3: {
      const double z = std::max(0.0, std::fabs(p.z) - size[1]);
      return size[0] - std::sqrt(beside * beside + z * z);
    }
    case 4: {
      const Point scaled = {p.x / size[0], p.y / size[1], p.z / size[2]};
      return 1.0 - std::sqrt(dot(scaled, scaled));
    }
    case 5:
      return std::min(size[0] - beside, size[1] - std::fabs(p.z));
    default:
      return std::min({size[0] - std::fabs(p.x), size[1] - std::fabs(p.y), size[2] - std::fabs(p.z)});
  }
}

void rays_meet_what_they_pass_through() {
  Random random(50);
  const double size[3] = {0.3, 0.5, 0.4};
  for (int shape = 2; shape <= 6; ++shape) {
    int met = 0, missed = 0;
    for (int trial = 0; trial < 300; ++trial) {
      const Point p = 0.6 * Point{random.normal(), random.normal(), random.normal()},
                  d = {random.normal(), random.normal(), trial % 7 == 0 ? 0.0 : random.normal()};
      double deepest = -1;
      for (int i = 0; i <= 4000; ++i) deepest = std::max(deepest, depth(shape, size, p + (i * 2e-3) * d));
      if (std::fabs(deepest) < 1e-2) continue;  // it grazes the zone
      const bool meets = ray_meets_zone(shape, size, p, d);
      CHECK(meets == (deepest > 0));
      ++(meets ? met : missed);
    }
    CHECK(met > 20 && missed > 20);
  }
}

}  // namespace

int main() { return run({{"rays meet what they pass through", rays_meet_what_they_pass_through}}); }
