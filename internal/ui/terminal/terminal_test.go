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
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Is(f) || FullScreen(f) || Color(f) || Width(f) != defaultWidth {
		t.Error("/dev/null is taken for a terminal")
	}
}
