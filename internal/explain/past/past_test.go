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

// A container that is gone is known by the name in the header of its recording.
func TestRecorded(t *testing.T) {
	at := time.Date(2026, 3, 4, 3, 12, 0, 0, time.UTC)
	store := flightrecorder.Store{Dir: filepath.Join(t.TempDir(), "recordings")}
	save := func(at time.Time, id uint64, name string) {
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
	save(at, 7, "cart")
	save(at.Add(time.Minute), 7, "cart")
	save(at.Add(-time.Hour), 8, "mail")
	save(at.Add(-time.Minute), 9, "search")
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
