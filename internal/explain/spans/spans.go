package spans

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/text"
)

// Keys of the attributes that spans get.
const (
	Stopped   = "unthrottle.stopped"
	StoppedMS = "unthrottle.stopped_ms"
	StoppedBy = "unthrottle.stopped_by"
)

// leastTold is the least stopped time of a span that is told: clocks of two programs may differ by less.
const leastTold = time.Millisecond

// ownQuota is StoppedBy for the container's own.
const ownQuota = "own quota"

// Container is a recorded container with its stops.
type Container struct {
	Target recording.Target
	// Begin and End are the wall clock's moments between which stops are known.
	Begin, End time.Time
	// Service is the service.name whose resources are the container's too; "": none.
	Service string
	stops   []diagnose.Stop // in the order of their beginnings
	// ended has, for each of them, the last moment of it and of all before it.
	ended []time.Duration
}

// Idle is a stretch of time in which none of the container's threads ran.
type Idle struct{ From, To time.Duration }

// Whole are the parts of stops in which nothing ran: what a quota left of the last CPU's slice some threads may still have while others
// are held back, and whose span that was a recording does not say. idle is in the order of time.
func Whole(stops []diagnose.Stop, idle []Idle) (whole []diagnose.Stop) {
	for _, s := range stops {
		first, _ := slices.BinarySearchFunc(idle, s.From, func(of Idle, from time.Duration) int {
			if of.To <= from {
				return -1
			}
			return 1
		})
		for _, of := range idle[first:] {
			if of.From >= s.To {
				break
			}
			part := s
			part.From, part.To = max(s.From, of.From), min(s.To, of.To)
			whole = append(whole, part)
		}
	}
	return whole
}

// SetStops gives it the stops, in any order.
func (c *Container) SetStops(stops []diagnose.Stop) {
	c.stops = slices.SortedStableFunc(slices.Values(stops), func(a, b diagnose.Stop) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Cgroup, b.Cgroup))
	})
	c.ended = make([]time.Duration, len(c.stops))
	last := time.Duration(0)
	for i, s := range c.stops {
		last = max(last, s.To)
		c.ended[i] = last
	}
}

// Count is what Add did.
type Count struct {
	// Spans are those of the container, Told those of them that got attributes, Outside those of which nothing is known, since they lie
	// before or after the recording.
	Spans, Told, Outside int
	// Others are spans of other resources.
	Others int
}

// Take adds what another Add did.
func (c *Count) Take(count Count) {
	c.Spans += count.Spans
	c.Told += count.Told
	c.Outside += count.Outside
	c.Others += count.Others
}

// fields is a JSON object of which only a few keys matter: all others go out as they came in.
type fields map[string]json.RawMessage

// each changes the objects of a list in a field, under either of the names that the encoding allows.
func (f fields) each(change func(fields) error, names ...string) error {
	for _, name := range names {
		raw, ok := f[name]
		if !ok || string(raw) == "null" {
			continue
		}
		var list []fields
		if err := json.Unmarshal(raw, &list); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for i, of := range list {
			if of == nil {
				continue
			}
			if err := change(of); err != nil {
				return fmt.Errorf("%s[%d]: %w", name, i, err)
			}
		}
		var err error
		if f[name], err = json.Marshal(list); err != nil {
			return err
		}
	}
	return nil
}

// Add adds the stops to one value of OTLP's JSON: TracesData, or a request to export it. Its errors name the place.
func (c *Container) Add(data []byte) (out []byte, n Count, err error) {
	var all fields
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, n, err
	}
	err = all.each(func(of fields) error {
		ours, err := c.is(of["resource"])
		if err != nil {
			return err
		}
		return of.each(func(scope fields) error {
			return scope.each(func(span fields) error {
				if !ours {
					n.Others++
					return nil
				}
				did, err := c.span(span)
				n.Take(did)
				return err
			}, "spans")
		}, "scopeSpans", "scope_spans")
	}, "resourceSpans", "resource_spans")
	if err != nil {
		return nil, n, err
	}
	out, err = json.Marshal(all)
	return out, n, err
}

// attribute is a KeyValue; its value goes out as it came in.
type attribute struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// attributesOf reads a list of them.
func attributesOf(raw json.RawMessage) (list []attribute, err error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("attributes: %w", err)
	}
	return list, nil
}

// text is a string value; "" of another kind.
func (a attribute) text() string {
	var v struct {
		String string `json:"stringValue"`
		Snake  string `json:"string_value"`
	}
	if json.Unmarshal(a.Value, &v) != nil { // of another kind
		return ""
	}
	return cmp.Or(v.String, v.Snake)
}

// is reports whether a resource is the container.
func (c *Container) is(resource json.RawMessage) (bool, error) {
	var of fields
	if len(resource) > 0 {
		if err := json.Unmarshal(resource, &of); err != nil {
			return false, fmt.Errorf("resource: %w", err)
		}
	}
	list, err := attributesOf(of["attributes"])
	if err != nil {
		return false, fmt.Errorf("resource: %w", err)
	}
	has := map[string]string{}
	for _, a := range list {
		has[a.Key] = a.text()
	}
	if c.Service != "" && has["service.name"] == c.Service {
		return true, nil
	}
	// 12 digits are the least that runtimes show of an id.
	if id := has["container.id"]; len(id) >= 12 && strings.Contains(path.Base(c.Target.Path), id) {
		return true, nil
	}
	t := &c.Target
	return t.Pod != "" && has["k8s.pod.name"] == t.Pod && has["k8s.container.name"] == t.Container && has["k8s.container.name"] != "" &&
		(has["k8s.namespace.name"] == "" || has["k8s.namespace.name"] == t.Namespace), nil
}

// span adds to one span of the container.
func (c *Container) span(of fields) (Count, error) {
	start, err := moment(of, "startTimeUnixNano", "start_time_unix_nano")
	if err != nil {
		return Count{}, err
	}
	end, err := moment(of, "endTimeUnixNano", "end_time_unix_nano")
	if err != nil {
		return Count{}, err
	}
	n := Count{Spans: 1}
	if !end.After(start) {
		return n, nil
	}
	if !end.After(c.Begin) || !start.Before(c.End) {
		n.Outside = 1
		return n, nil
	}
	list, err := attributesOf(of["attributes"])
	if err != nil {
		return n, err
	}
	list = slices.DeleteFunc(list, func(a attribute) bool { return a.Key == Stopped || a.Key == StoppedMS || a.Key == StoppedBy })
	stopped, by := c.between(start.Sub(c.Begin), end.Sub(c.Begin))
	if stopped >= leastTold {
		n.Told = 1
		from := "its own quota"
		if by != ownQuota {
			from = "the quota of " + by
		}
		least := ""
		if start.Before(c.Begin) || end.After(c.End) {
			least = "at least "
		}
		told := fmt.Sprintf("stopped %s%s of %s ms by %s", least, whole(stopped), whole(end.Sub(start)), from)
		list = append(list, stringAttribute(Stopped, told), doubleAttribute(StoppedMS, stopped.Seconds()*1e3),
			stringAttribute(StoppedBy, by))
	}
	if of["attributes"] != nil || len(list) > 0 {
		if of["attributes"], err = json.Marshal(list); err != nil {
			return n, err
		}
	}
	return n, nil
}

// whole is a duration in whole milliseconds, as text.
func whole(d time.Duration) string { return strconv.FormatInt(int64(math.Round(d.Seconds()*1e3)), 10) }

// between is for how long a quota stopped the container in a stretch of time, and which did for most of it. Time in
// which two do counts once.
func (c *Container) between(from, to time.Duration) (stopped time.Duration, by string) {
	parts := map[string]time.Duration{}
	until := from
	first, _ := slices.BinarySearchFunc(c.ended, from, func(ended, from time.Duration) int {
		if ended <= from {
			return -1
		}
		return 1
	})
	for _, s := range c.stops[first:] {
		if s.From >= to {
			break
		}
		within := min(s.To, to) - max(s.From, from)
		if within <= 0 {
			continue
		}
		parts[nameOf(s)] += within
		if begin := max(s.From, until); begin < min(s.To, to) {
			stopped += min(s.To, to) - begin
			until = min(s.To, to)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if by == "" || parts[name] > parts[by] {
			by = name
		}
	}
	return stopped, by
}

func nameOf(s diagnose.Stop) string {
	if s.Own {
		return ownQuota
	}
	return text.Sanitize(s.Cgroup, 0)
}

// moment is a time of a span in nanoseconds since 1970: a string of digits, or a number.
func moment(of fields, names ...string) (time.Time, error) {
	for _, name := range names {
		raw, ok := of[name]
		if !ok {
			continue
		}
		ns, err := strconv.ParseInt(strings.Trim(string(raw), `"`), 10, 64)
		if err != nil || ns < 0 {
			return time.Time{}, fmt.Errorf("%s: %.40q is no time in nanoseconds", name, raw)
		}
		return time.Unix(0, ns), nil
	}
	return time.Time{}, fmt.Errorf("a span without %s", names[0])
}

func stringAttribute(key, value string) attribute {
	return attribute{key, marshalled(map[string]string{"stringValue": value})}
}

func doubleAttribute(key string, value float64) attribute {
	return attribute{key, marshalled(map[string]float64{"doubleValue": value})}
}

// marshalled is a map of strings or finite numbers, which always has a JSON.
func marshalled(v any) json.RawMessage {
	b, _ := json.Marshal(v)
	return b
}
