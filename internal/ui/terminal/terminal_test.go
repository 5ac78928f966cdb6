package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

func TestAsk(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, " YES \n": true, "yes": true, "n\n": false, "": false, "yeah\n": false} {
		var out strings.Builder
		got, err := Ask(t.Context(), strings.NewReader(answer), &out, "apply it?")
		if err != nil || got != want || out.String() != "apply it? [y/N] " {
			t.Errorf("%q: %v, %v, %q", answer, got, err, out.String())
		}
	}
}

func TestAskEndsWithItsContext(t *testing.T) {
	never, _ := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := Ask(ctx, never, io.Discard, "apply it?"); got || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAFileIsNoTerminal(t *testing.T) {
	t.Setenv("COLUMNS", "")
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Is(f) || FullScreen(f) || Color(f) || Width(f) != defaultWidth {
		t.Error("/dev/null is taken for a terminal")
	}
	if Bounded(f) {
		t.Error("/dev/null has a width")
	}
	for columns, want := range map[string]int{"80": 80, "wide": defaultWidth, "-3": defaultWidth, "9999999": defaultWidth} {
		if t.Setenv("COLUMNS", columns); Width(f) != want {
			t.Errorf("COLUMNS=%s: %d, want %d", columns, Width(f), want)
		}
	}
}

func TestASCII(t *testing.T) {
	for _, c := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "", false}, {"", "", "C", true}, {"", "", "POSIX", true}, {"", "", "en_US.UTF-8", false}, {"", "", "C.utf8", false},
		{"C", "", "en_US.UTF-8", true}, {"C.UTF-8", "C", "C", false}, {"", "C", "en_US.UTF-8", true}, {"", "", "de_DE", true},
	} {
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_CTYPE", c.ctype)
		t.Setenv("LANG", c.lang)
		if got := ASCII(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
