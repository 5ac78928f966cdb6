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
