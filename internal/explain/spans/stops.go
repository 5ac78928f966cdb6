package spans

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"path"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/text"
)

// tracesData is what Export writes: the part of OTLP's TracesData that it needs.
type tracesData struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resource     `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}

type scopeSpans struct {
	Scope scope  `json:"scope"`
	Spans []span `json:"spans"`
}

type scope struct {
	Name string `json:"name"`
}

type span struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []attribute `json:"attributes"`
}

// spanKindInternal is SPAN_KIND_INTERNAL of opentelemetry-proto.
const spanKindInternal = 1

// Export writes the stops as spans of one trace, a span each. The same recording gives the same ids.
func (c *Container) Export() ([]byte, error) {
	id := sha256.Sum256([]byte(c.Target.Path + "\x00" + c.Begin.UTC().Format(time.RFC3339Nano)))
	spans := scopeSpans{Scope: scope{"unthrottle"}, Spans: []span{}}
	for i, s := range c.stops {
		by := nameOf(s)
		name := "stopped by its own quota"
		if !s.Own {
			name = "stopped by the quota of " + by
		}
		var number [8]byte
		binary.BigEndian.PutUint64(number[:], uint64(i)+1) // 0 is no id
		spans.Spans = append(spans.Spans, span{
			TraceID: hex.EncodeToString(id[:16]), SpanID: hex.EncodeToString(number[:]), Name: name, Kind: spanKindInternal,
			Start: nanoseconds(c.Begin.Add(s.From)), End: nanoseconds(c.Begin.Add(s.To)),
			Attributes: []attribute{doubleAttribute(StoppedMS, (s.To-s.From).Seconds()*1e3), stringAttribute(StoppedBy, by)},
		})
	}
	return json.Marshal(tracesData{[]resourceSpans{{resource{c.attributes()}, []scopeSpans{spans}}}})
}

// attributes are those of the container, by OpenTelemetry's semantic conventions.
func (c *Container) attributes() []attribute {
	t := &c.Target
	name := c.Service
	if name == "" {
		name = t.Name
	}
	list := []attribute{stringAttribute("service.name", text.Sanitize(name, 0))}
	for _, a := range []struct{ key, value string }{
		{"container.id", idOf(t.Path)}, {"k8s.namespace.name", t.Namespace}, {"k8s.pod.name", t.Pod}, {"k8s.container.name", t.Container},
	} {
		if a.value != "" {
			list = append(list, stringAttribute(a.key, text.Sanitize(a.value, 0)))
		}
	}
	return list
}

// idOf is the container's id in its cgroup's path: 64 hexadecimal digits, as all runtimes have them; "": there is none.
func idOf(cgroup string) string {
	const digits = 64
	base := path.Base(cgroup)
	for i := 0; i+digits <= len(base); i++ {
		if _, err := hex.DecodeString(base[i : i+digits]); err == nil {
			return base[i : i+digits]
		}
	}
	return ""
}

func nanoseconds(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
