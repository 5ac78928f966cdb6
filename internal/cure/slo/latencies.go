package slo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// A Source gives the user's own latencies in ms. since is from when on they are wanted; a source that knows no times
// disregards it.
type Source func(ctx context.Context, since time.Time) ([]float64, error)

// Latencies makes a latency source of a command. Each call of the source runs the command once and returns the
// latencies in ms that it printed, one per line.
func Latencies(command string) Source {
	return func(ctx context.Context, since time.Time) ([]float64, error) {
		out, err := Run(ctx, command, since)
		if err != nil {
			return nil, err
		}
		ms, _, err := parseLatencies(out)
		return ms, err
	}
}

// Bounds on what a latency source may print.
const (
	maxSamples = 1 << 20
	maxLine    = 256
)

// parseLatencies reads latencies, one number in ms per line. Empty lines do not count;
// those that hold no number, a negative one or more than 256 bytes count as
// bad. More than maxSamples is an error: cutting them would bias the quantile
// towards the beginning. More bad lines than good ones is an error too.
func parseLatencies(out []byte) (ms []float64, bad int, err error) {
	example := ""
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(make([]byte, 0, 4096), len(out)+1)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		n, err := text.ParseDecimal(line)
		if len(line) > maxLine || err != nil || n < 0 {
			if bad++; example == "" {
				example = line
			}
			continue
		}
		if len(ms) == maxSamples {
			return nil, bad, fmt.Errorf("the latency source printed more than %d numbers: let it measure a shorter time", maxSamples)
		}
		ms = append(ms, n)
	}
	if bad > len(ms) {
		return nil, bad, fmt.Errorf("the latency source printed %d lines that are no latency and %d that are: one number in ms per line is wanted, not %.60q",
			bad, len(ms), example)
	}
	return ms, bad, nil
}
