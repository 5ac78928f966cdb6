package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/explain/spans"
	"github.com/unthrottle/unthrottle/internal/infile"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
)

func newSpans() *cobra.Command {
	var to, service string
	cmd := &cobra.Command{
		Use:     "spans RECORDING",
		GroupID: groupLook,
		Short:   "Say in a service's own traces for how long a quota stopped its spans",
		Long: `Add what a recording of 'explain --record' knows to a service's own spans: one
of 140 ms gets "stopped 81 of 140 ms by its own quota". Spans come as OTLP in
JSON, as the file exporter of OpenTelemetry's collector writes them, and go to
standard output in the same form.

Spans of the container are found by their resource: container.id, or
k8s.pod.name and k8s.container.name, or the service.name of --service.
RECORDING is what 'explain TARGET --record FILE' writes.

Without --add-to the stops themselves are written, a span each.`,
		Example: `  unthrottle spans cart.rec --add-to traces.json > told.json
  unthrottle spans cart.rec > stops.json`,
		Args: oneRecording,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := rejectEmptyFlags(cmd, "add-to", "service"); err != nil {
				return err
			}
			return runSpans(cmd.Context(), args[0], to, service, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&to, "add-to", "", "`FILE` of spans to add to, - for standard input")
	cmd.Flags().StringVar(&service, "service", "", "the container's service.name is `NAME`, where spans have no container.id")
	return cmd
}

// oneRecording is the check of the arguments of a command that reads a recording's file.
func oneRecording(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage(cmd, "give one recording, as 'sudo unthrottle explain TARGET --record FILE' writes it")
	}
	return nil
}

func runSpans(ctx context.Context, name, to, service string, stdin io.Reader, out io.Writer) error {
	c, err := recordedStops(ctx, name)
	if err != nil {
		return err
	}
	c.Service = service
	buffered := bufio.NewWriter(out)
	if to == "" {
		data, err := c.Export()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(buffered, "%s\n", data)
		return errors.Join(err, buffered.Flush())
	}
	shown := "standard input"
	if to != "-" {
		file, err := infile.Open(ctx, to)
		if err != nil {
			return err
		}
		defer file.Close()
		stdin, shown = file, text.Sanitize(to, 0)
	}
	n, err := addStops(c, stdin, buffered)
	if err = errors.Join(err, buffered.Flush()); err != nil {
		return fmt.Errorf("%s: %w", shown, err)
	}
	return spansSaid(n, shown, c)
}

// recordedStops reads the container and its stops from a recording.
func recordedStops(ctx context.Context, name string) (*spans.Container, error) {
	file, err := infile.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var c spans.Container
	var stops []diagnose.Stop
	var idle []spans.Idle
	ran := true // as of the last count
	count := func(from time.Duration, width, _ int) {
		switch {
		case width == 0 && ran:
			idle = append(idle, spans.Idle{From: from})
		case width > 0 && !ran:
			idle[len(idle)-1].To = from
		}
		ran = width > 0
	}
	end, err := live.Schedule(file, func(h recording.Header) diagnose.Options {
		c.Target, c.Begin = h.Target, h.Created
		return diagnose.Options{Stops: func(s diagnose.Stop) { stops = append(stops, s) }, Counts: count}
	})
	count(end, 1, 1)
	if err != nil && (end == 0 || !errors.Is(err, recording.ErrDamaged)) {
		return nil, live.Named(name, err)
	}
	if err != nil {
		say("%s: %v: what comes after %v of it is not known", text.Sanitize(name, 0), err, plainTime(end.Round(time.Millisecond)))
	}
	c.End = c.Begin.Add(end)
	c.SetStops(spans.Whole(stops, idle))
	return &c, nil
}

// addStops adds the stops to all values of a stream of JSON. What was read before an error is written.
func addStops(c *spans.Container, in io.Reader, out io.Writer) (all spans.Count, err error) {
	values := json.NewDecoder(bufio.NewReader(in))
	for i := 1; ; i++ {
		var data json.RawMessage
		if err := values.Decode(&data); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, fmt.Errorf("value %d is no JSON: %w; give OTLP in JSON, as the collector's file exporter writes it", i, err)
		}
		told, n, err := c.Add(data)
		if err != nil {
			return all, fmt.Errorf("value %d is no OTLP: %w", i, err)
		}
		all.Take(n)
		if _, err := fmt.Fprintf(out, "%s\n", told); err != nil {
			return all, err
		}
	}
}

// spansSaid tells what was found. It is an error that none was of the container.
func spansSaid(n spans.Count, shown string, c *spans.Container) error {
	if n.Spans == 0 {
		return exitWith{exitNotMeasurable, fmt.Errorf("%s: none of %s is of %s: its resource has neither the "+
			"container.id nor the names of the pod and container; name its service.name by --service",
			shown, text.Count(n.Others, "span"), text.Sanitize(c.Target.Name, 0))}
	}
	say("%s of %s, %d were stopped; %s of other resources stay as they are", text.Count(n.Spans, "span"),
		text.Sanitize(c.Target.Name, 0), n.Told, text.Count(n.Others, "span"))
	if n.Outside > 0 {
		say("%s lie outside the recording, from %s to %s: nothing is known of them", text.Count(n.Outside, "span"),
			c.Begin.UTC().Format(time.RFC3339Nano), c.End.UTC().Format(time.RFC3339Nano))
	}
	if n.Outside == n.Spans {
		return exitWith{exitNotMeasurable, fmt.Errorf("%s: no span lies within the recording", shown)}
	}
	return nil
}
