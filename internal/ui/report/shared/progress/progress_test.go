package progress

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestLine(t *testing.T) {
	var b strings.Builder
	l := NewLine(&b, true)
	l.Draw(10*time.Second, 30*time.Second, "quota")
	l.Draw(10*time.Second+time.Millisecond, 30*time.Second, "quota")
	l.Draw(40*time.Second, 30*time.Second, "pin")
	l.Done()
	l.Done()
	want := fmt.Sprintf("\r%-30s 20 s  %-22s\r%-30s  0 s  %-22s\r\x1b[K", "##########", "quota", strings.Repeat("#", 30), "pin")
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestRecording(t *testing.T) {
	var b strings.Builder
	plain := NewRecording(&b, Plain, "cart\x1b[2J", 10*time.Second, nil)
	plain.Began()
	plain.Done()
	if got := b.String(); got != "recording cart\\x1b[2J for 10 s\n" {
		t.Errorf("%q", got)
	}
	b.Reset()
	drawn := NewRecording(&b, Terminal, "cart", 10*time.Second, nil)
	drawn.draw(2500 * time.Millisecond)
	if got, want := b.String(), "\r"+fmt.Sprintf("%-30s", "########")+
		"   8 s  recording cart; Ctrl-C explains what there is\x1b[K"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	drawn.Done()
	drawn.Done()
}

// A plain output gets a line of what is known, and none before a minute is over.
func TestMinutely(t *testing.T) {
	var b strings.Builder
	m := NewMinutely(&b, "bench service")
	m.say(time.Minute)
	m.Draw(2*time.Minute, 6*time.Minute, "quota\x1b[2J")
	m.say(125 * time.Second)
	m.Done()
	m.Done()
	want := "bench service goes on, for 60 s so far\nbench service goes on, for 2 min 5 s so far, about 4 min left: quota\\x1b[2J\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// A slow step says why, and of a recording only what is late is said where that is asked for.
func TestSlow(t *testing.T) {
	var b strings.Builder
	slow := NewSlow(&b, "forecasting", func() string { return "the CPUs are full" })
	slow.say(4 * time.Second)
	slow.Done()
	slow = NewSlow(&b, "forecasting", func() string { return "" })
	slow.say(8 * time.Second)
	slow.Done()
	late := NewRecording(&b, OnlyLate, "cart", time.Nanosecond, nil)
	late.slow.say(4 * time.Second)
	late.Began()
	late.Done()
	late.Done()
	want := "forecasting goes on, for 4 s so far; the CPUs are full\nforecasting goes on, for 8 s so far\n" +
		"preparing to record cart goes on, for 4 s so far\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestFor(t *testing.T) {
	var b strings.Builder
	for _, terminal := range []bool{true, false} {
		d := For(&b, terminal, true, "demo")
		if _, line := d.(*Line); line != terminal {
			t.Errorf("terminal %v: %T", terminal, d)
		}
		d.Done()
	}
	if b.String() != "" {
		t.Errorf("%q", b.String())
	}
}
