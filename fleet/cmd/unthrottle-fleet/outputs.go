package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/spf13/pflag"

	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/outfile"
	view "github.com/unthrottle/unthrottle/internal/ui/report/fleet"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/webpage"
)

// outputs are the files that a report is written to beside its text or JSON; "": none.
type outputs struct {
	html, metrics, patches string
	begun                  []begun
}

// begun is a file that is begun before the rows are read, so that one that cannot be written is told then.
type begun struct {
	file *outfile.File
	name string
	what string
	of   func(io.Writer, view.Document) error
}

func (o *outputs) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.html, "html", "", "also write a page, all in one file, to `FILE`")
	flags.StringVar(&o.metrics, "metrics", "", "also write figures for Prometheus to `FILE`, such as for node_exporter's textfile collector")
	flags.StringVar(&o.patches, "patches", "", "also write patches of Kubernetes' workloads to `DIR`, for limits that are surely enough")
}

// begin begins the files.
func (o *outputs) begin() error {
	if o.html != "" && o.metrics != "" && outfile.Same(o.html, o.metrics) {
		return errors.New("--html and --metrics name the same file: one would replace the other")
	}
	if o.patches != "" {
		if of, err := os.ReadDir(o.patches); err == nil && len(of) > 0 {
			return fmt.Errorf("--patches %s: it is not empty: patches of an earlier report would stay among the new ones; name another folder", text.Sanitize(o.patches, 0))
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("--patches: %w", err)
		}
	}
	for _, b := range []begun{
		{name: o.html, what: "page is", of: func(w io.Writer, d view.Document) error { return view.HTML(w, d, webpage.Origin{Version: version}) }},
		{name: o.metrics, what: "figures for Prometheus are", of: view.Metrics},
	} {
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

// abandon removes what was begun and not written.
func (o *outputs) abandon() (err error) {
	for _, b := range o.begun {
		err = errors.Join(err, b.file.End(false))
	}
	o.begun = nil
	return err
}

// write writes the files, each whole.
func (o *outputs) write(d view.Document) error {
	for len(o.begun) > 0 {
		b := o.begun[0]
		o.begun = o.begun[1:]
		if err := b.file.WriteAll(func(w io.Writer) error { return b.of(w, d) }); err != nil {
			return err
		}
		say("the %s in %s", b.what, text.Sanitize(b.name, 0))
	}
	if o.patches == "" {
		return nil
	}
	patches, left := view.Patches(d)
	if err := os.MkdirAll(o.patches, 0o755); err != nil {
		return fmt.Errorf("--patches: %w", err)
	}
	for _, p := range patches {
		name := filepath.Join(o.patches, filepath.FromSlash(p.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("--patches: %w", err)
		}
		if err := renameio.WriteFile(name, p.YAML, 0o644); err != nil {
			return fmt.Errorf("--patches: %w", err)
		}
	}
	say("%s in %s", text.CountOf(len(patches), "patch", "patches"), text.Sanitize(o.patches, 0))
	for _, why := range left {
		say("no patch of %s", why)
	}
	return nil
}
