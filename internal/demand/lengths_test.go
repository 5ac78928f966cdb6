package demand

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/stats"
)

// Stops are told apart within the lengths that a period may have.
func TestStops(t *testing.T) {
	var s Stops
	for _, us := range []int64{0, 1, 128, 129, 192, 193, 256, 1024, 1025, 1536, 95_000, 1_000_000, 5_000_000} {
		s.Add(time.Duration(us) * time.Microsecond)
	}
	s.Add(-time.Second)
	want := []Stop{{128, 2}, {192, 2}, {256, 2}, {1024, 1}, {1536, 2}, {98_304, 1}, {1_048_576, 2}}
	if got := s.List(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What recordings tell adds up in the slot under way, and is in no other. Strangers' names are made safe, and the roles
// are bounded.
func TestRecordingsAreInTheirSlot(t *testing.T) {
	r := NewRows(Names{"eu1", "n1"})
	o := observed(noon)
	r.Add([]observe.Observation{o})
	ms := func(n int, count int) []stats.Length {
		return []stats.Length{{UpTo: time.Duration(n) * time.Millisecond, Count: count}}
	}
	many := map[string][]stats.Length{"http\x1b": ms(3, 100), "main": ms(1, 50)}
	for i := range 2 * mostRoles {
		many[fmt.Sprintf("once-%02d", i)] = ms(1, 1)
	}
	r.AddRecording(o.CgroupID, Recorded{Seconds: 10, Responses: many, Requests: ms(90, 40), RequestsSeen: true})
	r.AddRecording(o.CgroupID, Recorded{Seconds: 5, Responses: map[string][]stats.Length{"main": ms(1, 60)}})
	r.AddRecording(o.CgroupID+1, Recorded{Seconds: 10})
	rows := r.Finish()
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	w := rows[0]
	if w.RecordedSeconds == nil || *w.RecordedSeconds != 15 || w.RequestCount == nil || *w.RequestCount != 40 {
		t.Errorf("recorded for %v s, %v requests", w.RecordedSeconds, w.RequestCount)
	}
	if want := []Request{{98_304, 40}}; !reflect.DeepEqual(w.Requests, want) {
		t.Errorf("requests %v, want %v", w.Requests, want)
	}
	if len(w.Responses) != mostRoles || w.Responses[0] != (Response{"main", 1024, 110}) ||
		w.Responses[1] != (Response{"http\\x1b", 3072, 100}) {
		t.Errorf("%d responses: %v", len(w.Responses), w.Responses)
	}
	r.Add([]observe.Observation{observed(noon.Add(SlotLength))})
	if w := r.Finish()[0]; w.RecordedSeconds != nil || w.Requests != nil || w.RequestCount != nil {
		t.Errorf("the next slot has the recordings of the one before: %+v", w)
	}
}
