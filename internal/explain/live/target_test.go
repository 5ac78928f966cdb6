package live

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

func TestOthers(t *testing.T) {
	at := func(path string) container.Container { return container.Container{Group: cgroup.Group{Path: path}} }
	others := Others(at("/pods/a"), []container.Container{at("/pods"), at("/pods/a"), at("/pods/a/inner"), at("/pods/ab"), at("/b")})
	if len(others) != 2 || others[0].Group.Path != "/pods/ab" || others[1].Group.Path != "/b" {
		t.Errorf("%+v", others)
	}
}

func TestLongEnough(t *testing.T) {
	short, long := diagnose.Explanation{Window: 50 * time.Millisecond}, diagnose.Explanation{Window: time.Second}
	ended := short
	ended.EndedEarly = "its cgroup was removed"
	var gone *Gone
	var tooShort *TooShort
	if err := LongEnough(long, "cart", true); err != nil {
		t.Error(err)
	}
	if err := LongEnough(ended, "cart", false); !errors.As(err, &gone) ||
		!strings.Contains(err.Error(), "its cgroup was removed after 50 ms") {
		t.Error(err)
	}
	if err := LongEnough(short, "cart", true); !errors.As(err, &tooShort) || !strings.Contains(err.Error(), "interrupted after 50 ms") {
		t.Error(err)
	}
}

func TestNamed(t *testing.T) {
	if err := Named("cart", nil); err != nil {
		t.Error(err)
	}
	if err := Named("cart\n", recording.ErrNotARecording); !strings.HasPrefix(err.Error(), `cart\n: `) ||
		!strings.Contains(err.Error(), "name it by its path or id") {
		t.Error(err)
	}
}
