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
	plain := NewRecording(&b, false, "cart\x1b[2J", 10*time.Second)
	plain.Began()
	plain.Done()
	if got := b.String(); got != "recording cart\\x1b[2J for 10s\n" {
		t.Errorf("%q", got)
	}
	b.Reset()
	drawn := NewRecording(&b, true, "cart", 10*time.Second)
	drawn.draw(2500 * time.Millisecond)
	if got, want := b.String(), "\r"+fmt.Sprintf("%-30s", "########")+"   8 s  recording cart; Ctrl-C explains what there is\x1b[K"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	drawn.Done()
	drawn.Done()
}
