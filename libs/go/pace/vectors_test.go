package pace

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/vectors.txt anew")

// vectors are what the libraries for Go and for the JVM both run: a line for each call, with what it is to give.
const vectors = "testdata/vectors.txt"

// TestVectors runs each line of the vectors. A line is a call, its arguments and what it gives, in ns; calls of slack
// and phase go on from the
// line before. If the rule has changed on purpose: go test ./pace -update, and the test of libs/java tells what to change there.
func TestVectors(t *testing.T) {
	if *update {
		if err := os.WriteFile(vectors, []byte(draw()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(vectors)
	if err != nil {
		t.Fatal(err)
	}
	var slack Slack
	var phase Phase
	var mean Mean
	var others Others
	var busy Busy
	lines := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		lines++
		call, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		arguments, result, ok := strings.Cut(rest, " = ")
		var got string
		switch call {
		case "decide":
			var p Period
			var w Work
			scan(t, line, arguments, &p.Quota, &p.Length, &p.Elapsed, &p.Used, &w.Cost, &w.Running, &w.Reserve, &w.Slack)
			_, wait := Decide(p, w)
			got = number(wait)
		case "slack.restart":
			var quota time.Duration
			scan(t, line, arguments, &quota)
			slack.Restart(quota)
			got = number(slack.Kept())
		case "slack.learn":
			var periods, stopped uint64
			var held bool
			scan(t, line, arguments, &periods, &stopped, &held)
			slack.Learn(periods, stopped, held)
			got = number(slack.Kept())
		case "phase.restart":
			var period time.Duration
			scan(t, line, arguments, &period)
			phase.Restart(period)
			got = number(phase.Next(0))
		case "phase.add":
			var s Sample
			scan(t, line, arguments, &s.From, &s.To, &s.Periods, &s.Resumed)
			phase.Add(s)
			got = number(phase.Next(s.To))
		case "phase.begin":
			var at time.Duration
			scan(t, line, arguments, &at)
			got = number(phase.Begin(at))
		case "mean.restart":
			mean = Mean{}
			got = number(mean.High())
		case "mean.add":
			var v time.Duration
			scan(t, line, arguments, &v)
			mean.Add(v)
			got = number(mean.High())
		case "others.restart":
			var quota time.Duration
			scan(t, line, arguments, &quota)
			others = Others{}
			got = number(others.Left(quota))
		case "others.learn":
			var perPeriod, span, quota time.Duration
			scan(t, line, arguments, &perPeriod, &span, &quota)
			others.Learn(perPeriod, span)
			got = number(others.Left(quota))
		case "busy.restart":
			busy.Restart()
			got = number(busy.Cost(time.Second))
		case "busy.learn":
			var used, taskTime time.Duration
			scan(t, line, arguments, &used, &taskTime)
			busy.Learn(used, taskTime)
			got = number(busy.Cost(time.Second))
		default:
			t.Fatalf("%q: no such call", line)
		}
		if !ok || got != result {
			t.Errorf("%sgives %s", line, got)
		}
	}
	if lines < 500 {
		t.Errorf("%d lines", lines)
	}
}

func number(d time.Duration) string { return fmt.Sprint(d.Nanoseconds()) }

func scan(t *testing.T, line, arguments string, into ...any) {
	t.Helper()
	for i, of := range into {
		if d, is := of.(*time.Duration); is {
			into[i] = (*int64)(d)
		}
	}
	if n, err := fmt.Sscan(arguments, into...); err != nil || n != len(strings.Fields(arguments)) {
		t.Fatalf("%q: %d arguments, %v", line, n, err)
	}
}

// draw writes vectors: the cases that the rule is about, by name, and drawn ones.
func draw() string {
	var b strings.Builder
	r := rand.New(rand.NewPCG(8, 9))
	any := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most))) }
	decide := func(about string, p Period, w Work) {
		if about != "" {
			fmt.Fprintf(&b, "# %s\n", about)
		}
		_, wait := Decide(p, w)
		fmt.Fprintln(&b, "decide", int64(p.Quota), int64(p.Length), int64(p.Elapsed), int64(p.Used), int64(w.Cost),
			w.Running, int64(w.Reserve), int64(w.Slack), "=", number(wait))
	}
	b.WriteString("# What both libraries do, in ns: go test ./pace -update writes it.\n")
	b.WriteString("# decide QUOTA PERIOD ELAPSED USED COST RUNNING RESERVE SLACK = WAIT\n")
	for _, c := range decisions {
		decide(c.about, c.period, c.work)
	}
	b.WriteString("# drawn\n")
	for range 300 {
		p := Period{Quota: 1 + any(200*ms), Length: ms + any(time.Second)}
		p.Elapsed, p.Used = any(p.Length), any(2*p.Quota)
		decide("", p, Work{Cost: any(100 * ms), Running: r.IntN(9), Reserve: p.Quota / 10, Slack: p.Quota / 20})
	}
	b.WriteString("# slack.restart QUOTA = KEPT; slack.learn PERIODS STOPPED HELD = KEPT\n")
	var slack Slack
	for range 10 { // a limit that changes begins anew
		quota := ms + any(300*ms)
		slack.Restart(quota)
		fmt.Fprintln(&b, "slack.restart", int64(quota), "=", number(slack.Kept()))
		for range 10 {
			periods, held := uint64(1+r.IntN(12)), r.IntN(4) > 0
			stopped := uint64(max(0, r.IntN(6)-4))
			slack.Learn(periods, stopped, held)
			fmt.Fprintln(&b, "slack.learn", periods, stopped, held, "=", number(slack.Kept()))
		}
	}
	b.WriteString("# phase.restart PERIOD = NEXT after 0; phase.add FROM TO PERIODS RESUMED = NEXT after TO; phase.begin AT = BEGIN\n")
	for n := range 10 {
		k := kernel{any(100 * ms), 100 * ms}
		var p Phase
		p.Restart(k.period)
		fmt.Fprintln(&b, "phase.restart", int64(k.period), "=", number(p.Next(0)))
		for at := any(time.Hour); !p.Known(); {
			at = p.Next(at) + any(3*ms)
			s := Sample{From: at, To: at + 50*time.Microsecond, Periods: k.at(at + 20*time.Microsecond)}
			if into := at - k.phase - floor(at-k.phase, k.period)*k.period; n%2 == 1 && into > 70*ms { // it was stopped until the next one
				s.From += k.period - into + 50*time.Microsecond
				s.To, s.Periods, s.Resumed = s.From+50*time.Microsecond, k.at(s.From+20*time.Microsecond), true
				at = s.From
			}
			p.Add(s)
			fmt.Fprintln(&b, "phase.add", int64(s.From), int64(s.To), s.Periods, s.Resumed, "=", number(p.Next(s.To)))
		}
		for range 3 {
			at := any(2 * time.Hour)
			fmt.Fprintln(&b, "phase.begin", int64(at), "=", number(p.Begin(at)))
		}
	}
	drawLearnt(&b, any)
	return b.String()
}

// drawLearnt writes lines of what is learnt from one look to the next.
func drawLearnt(b *strings.Builder, any func(most time.Duration) time.Duration) {
	b.WriteString("# mean.restart 0 = HIGH; mean.add VALUE = HIGH\n")
	for range 5 {
		var m Mean
		fmt.Fprintln(b, "mean.restart 0 =", number(m.High()))
		for range 10 {
			v := any(200 * ms)
			m.Add(v)
			fmt.Fprintln(b, "mean.add", int64(v), "=", number(m.High()))
		}
	}
	b.WriteString("# others.restart QUOTA = LEFT; others.learn PER_PERIOD SPAN QUOTA = LEFT\n")
	for range 10 {
		var o Others
		quota := ms + any(300*ms)
		fmt.Fprintln(b, "others.restart", int64(quota), "=", number(o.Left(quota)))
		for range 10 {
			perPeriod, span := any(2*quota)-quota/4, any(2*time.Second)
			o.Learn(perPeriod, span)
			fmt.Fprintln(b, "others.learn", int64(perPeriod), int64(span), int64(quota), "=", number(o.Left(quota)))
		}
	}
	b.WriteString("# busy.restart 0 = COST of a second; busy.learn USED TASK_TIME = COST of a second\n")
	for range 5 {
		var y Busy
		y.Restart()
		fmt.Fprintln(b, "busy.restart 0 =", number(y.Cost(time.Second)))
		for range 10 {
			used, taskTime := any(time.Second), 1+any(time.Second)
			y.Learn(used, taskTime)
			fmt.Fprintln(b, "busy.learn", int64(used), int64(taskTime), "=", number(y.Cost(time.Second)))
		}
	}
}
