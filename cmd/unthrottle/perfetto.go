package main

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/perfetto"
)

// writeTrace writes the schedule of a recording's file, if one was asked for.
func writeTrace(ctx context.Context, to *wanted, recorded string) error {
	if to == nil {
		return nil
	}
	if recorded == "" {
		to.abandon()
		return errors.New("--perfetto: nothing was recorded, so there is no schedule to show; it needs root and BPF")
	}
	file, err := infile.Open(ctx, recorded)
	if err != nil {
		to.abandon()
		return err
	}
	defer file.Close()
	defer slowly("writing " + text.Sanitize(to.name, 60))()
	return to.write("the schedule is in %s: open it at ui.perfetto.dev", func(w io.Writer) (err error) {
		if strings.HasSuffix(to.name, ".gz") {
			zip := gzip.NewWriter(w)
			defer func() { err = errors.Join(err, zip.Close()) }()
			w = zip
		}
		var trace *perfetto.Trace
		_, err = live.Schedule(file, func(h recording.Header) diagnose.Options { // that it was cut the explanation says
			trace = perfetto.Begin(w, h)
			return trace.Watch()
		})
		if trace == nil || err != nil && !errors.Is(err, recording.ErrDamaged) {
			return live.Named(recorded, err)
		}
		return trace.End()
	})
}
