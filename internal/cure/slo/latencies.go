package slo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Answer is what a source says of the requests of a time.
type Answer struct {
	// MS are their latencies in ms.
	MS []float64
	// Began is when each of them began; nil: the source does not say.
	Began []time.Time
}

// A Source gives the user's own latencies. since is from when on they are wanted; a source that knows no times
// disregards it.
type Source func(ctx context.Context, since time.Time) (Answer, error)

// Latencies makes a latency source of a command. Each call of the source runs the command once and returns the
// latencies that it printed. Of a command that prints times it leaves out requests that began before since. A request that
// begins in the future is an error, because then the times say nothing about before and after.
func Latencies(command string) Source {
	return func(ctx context.Context, since time.Time) (Answer, error) {
		out, err := Run(ctx, command, since)
		if err != nil {
			return Answer{}, err
		}
		a, _, err := parseLatencies(out)
		if err != nil {
			return Answer{}, err
		}
		return a.between(since, time.Now())
	}
}

// clockApart is how far the clock of a source may be ahead of this host's.
const clockApart = 2 * time.Second

// between leaves out what began before a time.
func (a Answer) between(since, now time.Time) (Answer, error) {
	if a.Began == nil {
		return a, nil
	}
	var left Answer
	for i, began := range a.Began {
		if ahead := began.Sub(now); ahead > clockApart {
			return Answer{}, fmt.Errorf("the latency source printed a request that begins in %v: "+
				"let its clock be this host's, and its times be those at which requests began", ahead.Round(time.Millisecond))
		}
		if !began.Before(since) {
			left.MS, left.Began = append(left.MS, a.MS[i]), append(left.Began, began)
		}
	}
	return left, nil
}

// Bounds on what a latency source may print.
const (
	maxSamples = 1 << 20
	maxLine    = 256
)

// Bounds on a time in seconds since 1970: from 2001 to 2286. Outside of them it is no time, or one in other units.
const minSeconds, maxSeconds = 1e9, 1e10

// parseLatencies reads latencies, one in ms per line, on each line or on none after the time at which the request began:
// as RFC 3339, or in seconds since 1970. Empty lines do not count; those that hold no number, a negative one, no such time
// or more than 256 bytes count as bad. More than maxSamples is an error: cutting them would bias the quantile
// towards the beginning. More bad lines than good ones is an error too.
func parseLatencies(out []byte) (a Answer, bad int, err error) {
	example, timed := "", 0
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(make([]byte, 0, 4096), len(out)+1)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		began, hasTime, ms, ok := parseLatency(line)
		if !ok {
			if bad++; example == "" {
				example = line
			}
			continue
		}
		if len(a.MS) == maxSamples {
			return Answer{}, bad, fmt.Errorf("the latency source printed more than %d numbers: let it measure a shorter time", maxSamples)
		}
		if a.MS = append(a.MS, ms); hasTime {
			timed++
			a.Began = append(a.Began, began)
		}
	}
	if bad > len(a.MS) {
		return Answer{}, bad, fmt.Errorf("the latency source printed %d lines that are no latency and %d that are: "+
			"one number in ms per line is wanted, or a time and such a number, not %.60q", bad, len(a.MS), example)
	}
	if timed > 0 && timed < len(a.MS) {
		return Answer{}, bad, fmt.Errorf("the latency source printed a time on %d of %d lines: let it print one on "+
			"each line or on none", timed, len(a.MS))
	}
	return a, bad, nil
}

// parseLatency reads one line. ok is false where it is no latency.
func parseLatency(line string) (began time.Time, hasTime bool, ms float64, ok bool) {
	if len(line) > maxLine {
		return began, false, 0, false
	}
	words := strings.Fields(line)
	if len(words) == 2 {
		if began, ok = parseTime(words[0]); !ok {
			return began, false, 0, false
		}
		hasTime, words = true, words[1:]
	}
	if len(words) != 1 {
		return began, false, 0, false
	}
	ms, err := text.ParseDecimal(words[0])
	return began, hasTime, ms, err == nil && ms >= 0
}

// parseTime reads a time: RFC 3339, or seconds since 1970.
func parseTime(word string) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339, word); err == nil {
		return at, at.Unix() >= minSeconds && at.Unix() < maxSeconds
	}
	seconds, err := text.ParseDecimal(word)
	if err != nil || seconds < minSeconds || seconds >= maxSeconds {
		return time.Time{}, false
	}
	whole, part := math.Modf(seconds)
	return time.Unix(int64(whole), int64(part*1e9)), true
}
