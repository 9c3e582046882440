// The broad phase: sweeps against all pairs of boxes, contacts against those of all pairs of shapes, packs.
#include <algorithm>
#include <cstring>
#include <set>

#include "allocation.hpp"
#include "contact_stage.hpp"

using namespace revolute;
using namespace revolute::check;

namespace {

using Pairs = std::set<std::pair<int, int>>;

std::vector<WorldBox> random_boxes(Random& random, int count, double size) {
  std::vector<WorldBox> boxes(count);
  for (WorldBox& box : boxes)
    for (int axis = 0; axis < 3; ++axis) {
      box.low[axis] = random.uniform(0, 10);
      box.high[axis] = box.low[axis] + random.uniform(0, size);
    }
  return boxes;
}
Pairs all_overlaps(const std::vector<WorldBox>& boxes) {
  Pairs out;
  for (int i = 0; i < int(boxes.size()); ++i)
    for (int j = i + 1; j < int(boxes.size()); ++j)
      if (overlap(boxes[i], boxes[j])) out.insert({i, j});
  return out;
}
Pairs swept_overlaps(const std::vector<WorldBox>& boxes, int& reports) {
  std::vector<int> order(boxes.size()), scratch(boxes.size());
  std::vector<WorldBox> sorted(boxes.size());
  Pairs out;
  reports = 0;
  sweep_and_prune(boxes.data(), int(boxes.size()), order.data(), scratch.data(), sorted.data(),
                  [&](int i, int j) {
                    out.insert(std::minmax(i, j));
                    ++reports;
                  });
  return out;
}

void sweeps_find_every_overlap_once() {
  Random random(300);
  for (int count : {0, 1, 2, 3, 17, 64, 200})
    for (double size : {0.5, 3.0, 20.0}) {
      std::vector<WorldBox> boxes = random_boxes(random, count, size);
      if (count > 16) {
        boxes[3] = boxes[4];                                    // the same place
        boxes[5].low[0] = boxes[5].high[0] = boxes[6].high[0];  // touching
        boxes[7].low[1] = std::nan("");
        boxes[8].high[2] = std::nan("");
        boxes[9] = {{-INFINITY, -INFINITY, -INFINITY}, {INFINITY, INFINITY, INFINITY}};
      }
      int reports;
      const Pairs found = swept_overlaps(boxes, reports);
      CHECK(found == all_overlaps(boxes));
      CHECK(reports == int(found.size()));
    }
}

void lists_are_merged_without_repetitions() {
  const int a[] = {1, 4, 4, 9}, b[] = {0, 4, 10};
  int out[7];
  const int count = merge_ascending(a, 4, b, 3, out);
  CHECK(std::vector<int>(out, out + count) == std::vector<int>({0, 1, 4, 9, 10}));
  CHECK(merge_ascending(a, 0, b, 0, out) == 0);
}

// Many free shapes of every kind that are no pairs of neighbours, over a plane; each pair of them may touch.
MujocoArrays heap_of_shapes(bool mujoco) {
  ModelMaker m;
  m.arrays.margin = 0.02;
  const int plane = m.add_geom(0, plane_geom, {0, 0, 1});
  std::vector<int> geoms = {plane};
  const int kinds[] = {sphere_geom, capsule_geom, box_geom, ellipsoid_geom, cylinder_geom};
  for (int i = 0; i < 36; ++i) {
    const int body = m.add_body(0, {0.3 * (i % 4), 0.3 * (i / 4 % 3), 0.1 + 0.3 * (i / 12)}, {0, 0, 0}, 1.0);
    m.add_joint(JointType::free, {0, 0, 0}, {0, 0, 1});
    const int kind = kinds[i % 5];
    const Point size = kind == sphere_geom                             ? Point{0.12, 0, 0}
                       : kind == capsule_geom || kind == cylinder_geom ? Point{0.08, 0.1, 0}
                                                                       : Point{0.12, 0.1, 0.08};
    geoms.push_back(m.add_geom(body, kind, size, {0.01, 0.02, 0}, {0.1, 0.2, 0.3}));
  }
  for (std::size_t i = 0; i < geoms.size(); ++i)
    for (std::size_t j = i + 1; j < geoms.size(); ++j) {
      const bool in_order = m.arrays.geom_type[geoms[i]] <= m.arrays.geom_type[geoms[j]];
      m.add_pair(in_order ? geoms[i] : geoms[j], in_order ? geoms[j] : geoms[i]);
    }
  if (mujoco) m.make_soft();
  return m.arrays;
}
// The same model with all pairs looked at.
struct AllPairs {
  Model model;
  std::vector<int> always;

  explicit AllPairs(const Model& of) : model(of) {
    for (int i = 0; i < of.ncandidate; i += of.candidates[i].slots) always.push_back(i);
    model.always = always.data();
    model.nalways = int(always.size());
    model.nswept = model.npartner = 0;
  }
};

struct Found {
  std::vector<int> candidates;
  Doubles numbers;
};
Found contacts_of(const ModelStorage& storage, const Model& model, const Doubles& qpos, const Doubles& qvel) {
  Owned<Parameters<double>> parameters(model);
  Owned<Kinematics<double>> kin(model);
  Owned<Contacts<double>> contacts(model);
  load_defaults(storage, *parameters);
  kinematics(model, *parameters, qpos.data(), qvel.data(), *kin);
  collision_detection(model, *kin, kin->V, model.timestep, *contacts);
  Found out;
  for (int c = 0; c < contacts->count; ++c) {
    const Contact<double>& contact = contacts->list[c];
    out.candidates.push_back(int(contact.candidate - model.candidates));
    for (double x : {contact.gap, contact.at.point.x, contact.at.normal.z, contact.force_b[1].n.x})
      out.numbers.push_back(x);
  }
  return out;
}

// Not one contact less than with all pairs, in the same order, to the bit; fast bodies as well.
void contacts_are_those_of_all_pairs() {
  Random random(301);
  for (bool mujoco : {false, true}) {
    const MujocoArrays arrays = heap_of_shapes(mujoco);
    const ModelStorage storage(arrays);
    CHECK(storage.model().nswept == 36 && storage.model().nalways < storage.model().ncandidate / 4);
    const AllPairs all(storage.model());
    for (double speed : {0.0, 1.0, 30.0}) {
      Doubles qpos = arrays.qpos0, qvel = random.normals(arrays.nv);
      for (int k = 0; k < arrays.nq; ++k) qpos[k] += 0.05 * random.normal();
      for (double& v : qvel) v *= speed;
      const Found swept = contacts_of(storage, storage.model(), qpos, qvel),
                  wanted = contacts_of(storage, all.model, qpos, qvel);
      CHECK(wanted.candidates.size() > 10);
      CHECK(swept.candidates == wanted.candidates);
      CHECK(swept.numbers == wanted.numbers);
    }
  }
}

// Environments that have different pairs in touch, one of them blown up in part.
void packs_equal_single_runs() {
  Random random(302);
  for (bool mujoco : {false, true}) {
    const MujocoArrays arrays = heap_of_shapes(mujoco);
    const ModelStorage storage(arrays);
    const ContactStage stage{storage, arrays.qpos0};
    std::vector<Doubles> environments = environments_around(random, Doubles(arrays.nv, 0.0), 0.1);
    environments[3][7] = std::nan("");
    environments[5][14] = 1e200;
    check_lanes("broad phase", environments, stage.n_out(), stage);
  }
}

void few_pairs_are_all_looked_at() {
  const ModelStorage storage(crowd());
  CHECK(storage.model().nswept == 0);
  CHECK(storage.model().nalways > 0);
}

void takes_nothing_from_the_heap() {
  const MujocoArrays arrays = heap_of_shapes(false);
  const ModelStorage storage(arrays);
  const Model& model = storage.model();
  Owned<Parameters<double>> parameters(model);
  Owned<Kinematics<double>> kin(model);
  Owned<Contacts<double>> contacts(model);
  load_defaults(storage, *parameters);
  const Doubles still(arrays.nv, 0.0);
  kinematics(model, *parameters, arrays.qpos0.data(), still.data(), *kin);
  check_no_allocation("broad phase",
                      [&] { collision_detection(model, *kin, kin->V, model.timestep, *contacts); });
}

}  // namespace

int main() {
  return run({{"sweeps", sweeps_find_every_overlap_once},
              {"merged lists", lists_are_merged_without_repetitions},
              {"all pairs", contacts_are_those_of_all_pairs},
              {"packs", packs_equal_single_runs},
              {"few pairs", few_pairs_are_all_looked_at},
              {"allocation", takes_nothing_from_the_heap}});
}
