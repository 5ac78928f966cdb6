package past

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

func save(t *testing.T, store flightrecorder.Store, at time.Time, id uint64, name string) {
	t.Helper()
	_, _, err := store.Save(at, id, func(w io.Writer) error {
		out, err := recording.NewWriter(w, recording.Header{Target: recording.Target{Path: "/pods/" + name, Name: name, ID: id}})
		if err != nil {
			return err
		}
		return out.Close(recording.Footer{EndNS: 1})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A container that is gone is known by the name in the header of its recording.
func TestRecorded(t *testing.T) {
	at := time.Date(2026, 3, 4, 3, 12, 0, 0, time.UTC)
	store := flightrecorder.Store{Dir: filepath.Join(t.TempDir(), "recordings")}
	save(t, store, at, 7, "cart")
	save(t, store, at.Add(time.Minute), 7, "cart")
	save(t, store, at.Add(-time.Hour), 8, "mail")
	save(t, store, at.Add(-time.Minute), 9, "search")
	broken := filepath.Join(store.Dir, "20260304T031200.000Z-10.recording")
	if err := os.WriteFile(broken, []byte("no recording"), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := store.List()
	if err != nil {
		t.Fatal(err)
	}
	got := recorded(entries, at)
	want := []flightrecorder.Identity{{ID: 9, Path: "/pods/search", Name: "search"}, {ID: 7, Path: "/pods/cart", Name: "cart"}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("known from recordings: %+v, want %+v", got, want)
	}
	gone := errors.New("no such container")
	o := Options{Target: "cart", Running: func() (flightrecorder.Identity, error) { return flightrecorder.Identity{}, gone }}
	if found, err := o.targets(got); err != nil || len(found) != 1 || found[0].ID != 7 {
		t.Errorf("cart is %+v, %v", found, err)
	}
	o.Target = "other"
	if _, err := o.targets(got); !errors.Is(err, gone) {
		t.Errorf("%v, want %v", err, gone)
	}
	o.Running = func() (flightrecorder.Identity, error) { return flightrecorder.Identity{ID: 11, Name: "other"}, nil }
	if found, err := o.targets(got); err != nil || len(found) != 1 || found[0].ID != 11 {
		t.Errorf("other is %+v, %v", found, err)
	}
}

// What was recorded before a reboot of the container that then had the running one's cgroup id is not its own.
func TestTheIDOfAnotherBoot(t *testing.T) {
	at := time.Date(2026, 3, 4, 3, 12, 0, 0, time.UTC)
	dir := t.TempDir()
	store := flightrecorder.Store{Dir: filepath.Join(dir, "recordings"), Boot: "a"}
	save(t, store, at, 7, "mail")
	r := flightrecorder.NewRecorder()
	r.Add(flightrecorder.Identity{ID: 7, Boot: "a", Name: "mail"},
		flightrecorder.Period{End: at, Length: 100 * time.Millisecond, Stopped: 0.5})
	if err := r.Flush(dir); err != nil {
		t.Fatal(err)
	}
	nothing := new(NothingKept)
	_, err := Explain(t.Context(), Options{Dir: dir, Recordings: store.Dir, Target: "cart", At: at,
		Running: func() (flightrecorder.Identity, error) {
			return flightrecorder.Identity{ID: 7, Boot: "b", Name: "cart"}, nil
		}})
	if !errors.As(err, &nothing) {
		t.Errorf("%v", err)
	}
}

func TestNothingKept(t *testing.T) {
	dir := t.TempDir()
	nothing := new(NothingKept)
	_, err := Explain(t.Context(), Options{Dir: dir, Recordings: filepath.Join(dir, "recordings"), Target: "cart", At: time.Now(),
		Running: func() (flightrecorder.Identity, error) { return flightrecorder.Identity{ID: 7, Name: "cart"}, nil }})
	if !errors.As(err, &nothing) {
		t.Errorf("%v", err)
	}
	if _, err := Explain(t.Context(), Options{Dir: filepath.Join(dir, "none"), Target: "cart",
		At: time.Now()}); !errors.As(err, &nothing) || !strings.Contains(err.Error(), "no such folder") {
		t.Errorf("a folder that is not there: %v", err)
	}
}
