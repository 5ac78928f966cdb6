package page

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWidthIsBounded(t *testing.T) {
	for _, c := range []struct{ width, least, most, want int }{
		{0, 40, 132, 80}, {10, 40, 132, 40}, {500, 40, 132, 132}, {500, 40, 0, 500}, {0, 0, 0, 80},
	} {
		if got := New(Style{Width: c.width}, c.least, c.most).Columns; got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestPage(t *testing.T) {
	p := New(Style{Width: 20}, 0, 0)
	p.Line("a line as it is, however wide   ")
	p.Hanging("1. ", "the quota was spent early")
	p.Section("Next:")
	p.Wrapped("CPUs ", "     ", ", ", []string{"0-1", "4-5", "8-9", "12-13"})
	p.Wrapped("", "", ",", []string{"0", "2"})
	p.Lines([]string{"x", "y"})
	p.Paragraph("short")
	want := `a line as it is, however wide
1. the quota was
   spent early

Next:
CPUs 0-1, 4-5, 8-9,
     12-13
0,2
x
y
short
`
	if d := cmp.Diff(want, p.String()); d != "" {
		t.Error(d)
	}
}

func TestPaint(t *testing.T) {
	plain, colours := New(Style{}, 0, 0), New(Style{Color: true}, 0, 0)
	if plain.Bolden("x") != "x" || colours.Bolden("x") != "\x1b[1mx\x1b[0m" || colours.Paint(Red, "") != "" {
		t.Errorf("%q, %q", plain.Bolden("x"), colours.Bolden("x"))
	}
}

type broken struct{}

var errBroken = errors.New("broken pipe")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestSendTellsThatItFailed(t *testing.T) {
	if err := New(Style{}, 0, 0).Send(broken{}); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}

func TestStyle(t *testing.T) {
	var b strings.Builder
	if err := (Style{Width: 24, ASCII: true}).Send(&b, "café… is stopped by a quota of its own\n"); err != nil {
		t.Fatal(err)
	}
	if want := "caf\\u00e9~ is stopped by\n  a quota of its own\n"; b.String() != want {
		t.Errorf("%q", b.String())
	}
}
