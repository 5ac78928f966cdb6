// Package placefile reads the files that describe placements: a list of
// containers in YAML, and a placement in JSON, as `unthrottle place` prints it.
//
//   - {name: db, cpus: 8, full_cores: true}
//   - {name: web, cpus: 2.5, class: hybrid}
//   - {name: db, leaves: true}
//
// Both may come from anywhere: they are bounded, and every error names the line
// or the key and the way out.
package placefile
