#include "runtime/preprocess/input_reader.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/units.h"
#include "runtime/base/utf8.h"
#include "runtime/data/foreign_format.h"

namespace dstrain::preprocess {
namespace {

constexpr std::size_t piece_bytes_max = gibibyte;

std::size_t find_column(const std::vector<std::string>& names,
                        const std::string& wanted,
                        const std::string& path) {
  const auto found = std::ranges::find(names, wanted);
  if (std::ranges::count(names, wanted) == 1) {
    return static_cast<std::size_t>(found - names.begin());
  }
  if (found != names.end()) {
    fail(ErrorCode::input, "{}: two columns are named '{}'", path, wanted);
  }
  fail(ErrorCode::input, "{}: has no column '{}', but {}; --text_column chooses one", path, wanted,
       fmt::join(names, ", "));
}

}  // namespace

InputReader::InputReader(const std::vector<InputFile>& inputs, CutText cut_text, Options options)
    : inputs_(inputs), cut_text_(cut_text), options_(std::move(options)), position_(options_.from) {
  for (std::int64_t i = 0; i < position_.input; ++i) {
    consumed_before_ += inputs_[static_cast<std::size_t>(i)].bytes;
  }
}

std::optional<InputPiece> InputReader::next() {
  for (; position_.input < std::ssize(inputs_); close()) {
    if (!source_) open();
    for (auto wanted = static_cast<std::size_t>(options_.piece_bytes);; wanted *= 2) {
      fill(wanted);
      if (window_.empty()) break;
      const bool is_rest = at_end_ && window_.size() <= wanted;
      const std::size_t bytes = is_rest ? window_.size() : cut(std::min(wanted, window_.size()));
      if (bytes > 0) return take(bytes);
      if (wanted < piece_bytes_max) continue;
      fail(ErrorCode::input, "{}:{}: {}", input().path, position_.line,
           input().layout == Layout::text
               ? "more than a gibibyte of text without a place where it could be cut"
               : "a record is larger than a gibibyte");
    }
  }
  return std::nullopt;
}

const InputFile& InputReader::input() const {
  return inputs_[static_cast<std::size_t>(position_.input)];
}

void InputReader::open() {
  source_ = open_bytes(input());
  window_.clear();
  at_end_ = false;
  fill(mebibyte);
  data::refuse_unread_format(input().path, window_);
  data::refuse_binary(input().path, window_);
  if (input().layout == Layout::text) {
    data::refuse_records_as_text(input().path, window_);
    const std::string note = data::note_on_json(input().path, window_);
    if (!note.empty()) log_warning(note);
  }
  head_ = read_head();
  seek(std::max(position_.offset, head_));
}

void InputReader::close() {
  refuse_changed(input());
  consumed_before_ += input().bytes;
  source_.reset();
  position_ = {.input = position_.input + 1};
}

std::int64_t InputReader::read_head() {
  if (input().layout == Layout::text) return 0;
  const std::size_t mark = window_.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  const std::string_view begin = std::string_view(window_).substr(mark);
  if (input().layout == Layout::json_lines) {
    framing_ = data::framing_of(window_);
    return static_cast<std::int64_t>(data::head_bytes(window_, framing_));
  }
  column_.separator = input().layout == Layout::csv ? ',' : '\t';
  const CsvRecord names = parse_csv_record(begin, column_.separator, input().path + ":1");
  column_.index = find_column(names.fields, options_.text_column, input().path);
  column_.columns = names.fields.size();
  return static_cast<std::int64_t>(mark + names.bytes);
}

void InputReader::seek(std::int64_t offset) {
  const auto passed = static_cast<std::size_t>(std::min(offset, std::ssize(window_)));
  if (position_.offset == 0) {
    const std::string_view head = std::string_view(window_).substr(0, passed);
    count(head.substr(head.starts_with(byte_order_mark) ? byte_order_mark.size() : 0));
  }
  position_.offset = offset;
  window_.erase(0, passed);
  if (offset > static_cast<std::int64_t>(passed)) {
    source_->skip(offset - static_cast<std::int64_t>(passed));
  }
}

void InputReader::count(std::string_view passed) {
  position_.line += std::ranges::count(passed, '\n');
  if (input().layout != Layout::json_lines) return;
  const std::size_t newline = passed.rfind('\n');
  const bool same_line = newline == std::string_view::npos;
  position_.column = same_line ? position_.column + std::ssize(passed)
                               : std::ssize(passed) - static_cast<std::int64_t>(newline);
}

void InputReader::fill(std::size_t bytes) {
  if (at_end_ || window_.size() >= bytes) return;
  const std::size_t before = window_.size();
  window_.resize(bytes);
  window_.resize(before + source_->read(std::span(window_).subspan(before)));
  at_end_ = window_.size() < bytes;
}

std::size_t InputReader::cut(std::size_t bytes) const {
  // Without the last byte, so that another piece follows, which ends the file.
  const std::string_view text(window_.data(), bytes - 1);
  switch (input().layout) {
    case Layout::text:
      return cut_text_(text);
    case Layout::json_lines:
      return data::cut_records(text, framing_, position_.offset == head_);
    case Layout::csv:
    case Layout::tsv:
      return whole_records(text, column_.separator);
  }
  DSTRAIN_CHECK(false, "layout {}", static_cast<int>(input().layout));
}

InputPiece InputReader::take(std::size_t bytes) {
  InputPiece piece{.position = position_,
                   .bytes = window_.substr(0, bytes),
                   .ends_file = at_end_ && bytes == window_.size(),
                   .column = column_,
                   .framing = framing_,
                   .begins_records = position_.offset == head_,
                   .consumed = consumed_before_ + source_->consumed()};
  window_.erase(0, bytes);
  position_.offset += static_cast<std::int64_t>(bytes);
  count(piece.bytes);
  return piece;
}

}  // namespace dstrain::preprocess
