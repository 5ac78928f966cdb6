package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/pflag"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/outfile"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/jsonout"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/webpage"
)

// outputs are the files that a report is written to beside its text or JSON; "": none.
type outputs struct {
	html, metrics, parquet, patches, jsonFile, plan string
	begun                                           []begun
	// planned is what goes to the file that plan names.
	planned view.Plan
	// made is a folder that was made for files that are not written yet.
	made string
}

// begun is a file that is begun before the rows are read, so that one that cannot be written is told then.
type begun struct {
	file  *outfile.File
	name  string
	what  string
	write func(io.Writer, view.Document) error
}

func (o *outputs) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.html, "html", "", "also write a page, all in one file, to `FILE`")
	flags.StringVar(&o.metrics, "metrics", "",
		"also write figures for Prometheus to `FILE`, such as for node_exporter's textfile collector")
	flags.StringVar(&o.jsonFile, "json-file", "", "also write the JSON to `FILE`")
	flags.StringVar(&o.plan, "plan", "",
		"also plan which container on which host, as 'fleet plan --json' does, from the same rows read once, and write it to `FILE`")
	flags.StringVar(&o.parquet, "parquet", "", "also write the report's tables, a file of Parquet each, to `DIR`")
	flags.StringVar(&o.patches, "patches", "",
		"also write patches of Kubernetes' workloads to `DIR`, for limits that are surely enough, and the ThrottlePolicies that some need")
}

// begin begins the files of a report on rows below a folder.
func (o *outputs) begin(from string) error {
	files := []struct{ flag, name string }{{"html", o.html}, {"metrics", o.metrics}, {"json-file", o.jsonFile}, {"plan", o.plan}}
	for i, a := range files {
		for _, b := range files[i+1:] {
			if a.name != "" && b.name != "" && outfile.Same(a.name, b.name) {
				return fmt.Errorf("--%s and --%s name the same file: one would replace the other", a.flag, b.flag)
			}
		}
	}
	if o.patches != "" {
		if entries, err := os.ReadDir(o.patches); err == nil && len(entries) > 0 {
			return fmt.Errorf("--patches %s: it is not empty: patches of an earlier report would stay among the new ones; "+
				"name another folder", text.Sanitize(o.patches, 0))
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("--patches: %w", err)
		}
	}
	planned := []begun{
		{name: o.html, what: "page is", write: func(w io.Writer, d view.Document) error {
			return view.HTML(w, d, webpage.Origin{Version: version})
		}},
		{name: o.metrics, what: "figures for Prometheus are", write: view.Metrics},
		{name: o.jsonFile, what: "JSON is", write: func(w io.Writer, d view.Document) error {
			return jsonout.Write(w, "fleet_report", d)
		}},
		{name: o.plan, what: "plan is", write: func(w io.Writer, _ view.Document) error {
			return jsonout.Write(w, "fleet_plan", o.planned)
		}},
	}
	if o.parquet != "" {
		if err := o.makeFolder(from); err != nil {
			return errors.Join(err, o.abandon())
		}
		for _, table := range view.Tables {
			planned = append(planned, begun{name: filepath.Join(o.parquet, table.Name+".parquet"), what: "table is",
				write: table.Write})
		}
	}
	for _, b := range planned {
		if b.name == "" {
			continue
		}
		var err error
		if b.file, err = outfile.Create(b.name); err != nil {
			return errors.Join(err, o.abandon())
		}
		o.begun = append(o.begun, b)
	}
	return nil
}

// makeFolder makes the folder of the tables.
func (o *outputs) makeFolder(from string) error {
	switch err := os.Mkdir(o.parquet, 0o777); {
	case err == nil:
		o.made = o.parquet
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("--parquet: there is no folder %s: make it first", text.Sanitize(filepath.Dir(o.parquet), 0))
	case !errors.Is(err, os.ErrExist):
		return fmt.Errorf("--parquet: %w", err)
	}
	if below(o.parquet, from) {
		return fmt.Errorf("--parquet %s: it is in the folder of the rows, where the next report would take its files for "+
			"rows: give another", text.Sanitize(o.parquet, 0))
	}
	return nil
}

// below reports whether a folder is another one or in it.
func below(dir, other string) bool {
	real := func(name string) string {
		if abs, err := filepath.Abs(name); err == nil {
			name = abs
		}
		if link, err := filepath.EvalSymlinks(name); err == nil {
			name = link
		}
		return name
	}
	path, err := filepath.Rel(real(other), real(dir))
	return err == nil && path != ".." && !strings.HasPrefix(path, "../")
}

// abandon removes what was begun and not written.
func (o *outputs) abandon() (err error) {
	for _, b := range o.begun {
		err = errors.Join(err, b.file.End(false))
	}
	if o.made != "" {
		err = errors.Join(err, os.Remove(o.made))
	}
	o.begun, o.made = nil, ""
	return err
}

// write writes the files, each whole.
func (o *outputs) write(d view.Document) error {
	o.made = ""
	for len(o.begun) > 0 {
		b := o.begun[0]
		o.begun = o.begun[1:]
		if err := b.file.WriteAll(func(w io.Writer) error { return b.write(w, d) }); err != nil {
			return err
		}
		say("the %s in %s", b.what, text.Sanitize(b.name, 0))
	}
	if o.patches == "" {
		return nil
	}
	patches, policies, left, crowded := view.Patches(d)
	if err := os.MkdirAll(o.patches, 0o755); err != nil {
		return fmt.Errorf("--patches: %w", err)
	}
	for _, p := range slices.Concat(patches, policies) {
		name := filepath.Join(o.patches, filepath.FromSlash(p.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("--patches: %w", err)
		}
		if err := renameio.WriteFile(name, p.YAML, 0o644); err != nil {
			return fmt.Errorf("--patches: %w", err)
		}
	}
	say("%s in %s", text.CountOf(len(patches), "patch", "patches"), text.Sanitize(o.patches, 0))
	if len(policies) > 0 {
		say("%s beside them, to apply before them", text.CountOf(len(policies), "ThrottlePolicy", "ThrottlePolicies"))
	}
	for _, line := range crowded {
		say("%s", line)
	}
	for _, why := range left {
		say("no patch of %s", why)
	}
	return nil
}
