// Shapes, height fields and sites.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "hulls.hpp"
#include "model_builder.hpp"
#include "shape_table.hpp"

namespace revolute {

void ModelBuilder::add_height_fields() {
  const Doubles& data = in_.hfield_data;
  std::size_t first = 0;
  for (std::size_t f = 0; f < in_.hfield_nrow.size(); ++f) {
    const double* size = &in_.hfield_size[4 * f];
    HeightField field{};
    field.rows = in_.hfield_nrow[f];
    field.columns = in_.hfield_ncol[f];
    const std::size_t count = std::size_t(field.rows) * field.columns;
    if (field.rows < 2 || field.columns < 2 || first + count > data.size())
      throw std::invalid_argument("hfield_data: expected 2 rows and columns or more, and a height for each");
    for (int i : {0, 1}) {
      field.half[i] = size[i];
      field.step[i] = 2 * size[i] / ((i == 0 ? field.columns : field.rows) - 1);
    }
    field.base = size[3];
    for (std::size_t i = first; i < first + count; ++i) out_.heights_.push_back(data[i] * size[2]);
    first += count;
    out_.height_fields_.push_back(field);
  }
  first = 0;
  for (HeightField& field : out_.height_fields_) {
    field.heights = out_.heights_.data() + first;
    first += std::size_t(field.rows) * field.columns;
  }
}

// The number of points at which a shape may touch a field: one for each prism that it may lie over.
int ModelBuilder::field_points(const HeightField& field, const Geom& geom) {
  double cells = 1;
  for (int i : {0, 1}) {
    const int all = (i == 0 ? field.columns : field.rows) - 1;
    cells *= std::min(double(all), std::ceil(2 * geom.bound / field.step[i]) + 1);
  }
  return int(std::min(2.0 * cells, double(most_field_points)));
}

void ModelBuilder::add_geoms() {
  add_height_fields();
  out_.triangles_ = in_.ray_triangles;
  for (int g = 0; g < in_.ngeom; ++g) {
    const int body = in_.geom_bodyid[g];
    const Pose at = body_pose_[body] * pose(&in_.geom_pos[3 * g], &in_.geom_quat[4 * g]);
    Geom geom{};
    const ShapeRow& row = shape_row(in_.geom_type[g]);
    geom.shape = row.shape;
    geom.link = body_link_[body];
    geom.body = body;
    for (const Transmission& of : out_.transmissions_)
      geom.adheres = geom.adheres || (of.type == TransmissionType::body && of.body == body);
    store(at.R, geom.rotation);
    store(at.p, geom.position);
    store(at.q, geom.orientation);
    row.measure(&in_.geom_size[3 * g], geom);
    geom.bound = in_.geom_rbound[g];
    geom.field = in_.geom_field[g];
    const bool is_field = geom.shape == Shape::height_field;
    if (is_field != (geom.field >= 0) || geom.field >= int(out_.height_fields_.size()) ||
        (is_field && !is_world(geom.link)))
      throw std::invalid_argument("geom_field: expected a height field fixed in the world, geom " +
                                  std::to_string(g));
    if (geom.shape == Shape::plane) std::copy_n(&in_.geom_size[3 * g], 2, geom.extent);
    if (!in_.ray_adr.empty()) {
      geom.first_triangle = in_.ray_adr[g];
      geom.triangles = in_.ray_num[g];
    }
    add_hull(in_, g, at, geom, out_.hulls_);
    out_.geoms_.push_back(geom);
  }
}

void ModelBuilder::add_sites() {
  for (int s = 0; s < in_.nsite; ++s) {
    const int body = in_.site_bodyid[s];
    const Pose at = body_pose_[body] * pose(&in_.site_pos[3 * s], &in_.site_quat[4 * s]);
    FixedFrame site{};
    site.link = body_link_[body];
    site.body = body;
    store(at.R, site.rotation);
    store(at.p, site.position);
    store(at.q, site.orientation);
    out_.sites_.push_back(site);
  }
}

}  // namespace revolute
