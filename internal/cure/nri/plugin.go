package nri

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/container/names"
)

// DefaultSocket is where containerd and CRI-O listen for plugins.
const DefaultSocket = api.DefaultSocketPath

// Name and index of the plugin; runtimes call plugins in the order of their indexes.
const (
	pluginName  = "unthrottle"
	pluginIndex = "95"
)

const (
	// firstPause and longestPause bound the wait before the next dial; it doubles after each failure.
	firstPause   = 250 * time.Millisecond
	longestPause = 30 * time.Second
	// startTime is how long a runtime may take to accept the plugin.
	startTime = 10 * time.Second
	// answerTime is how long a runtime may take for one update.
	answerTime = 10 * time.Second
)

// Options of New.
type Options struct {
	// Socket is the runtime's.
	Socket string
	// Optional says that a host without the socket is in order.
	Optional bool
	// AnnotationPrefix begins the keys of the pods' annotations that are kept; "": none are.
	AnnotationPrefix string
	// Log takes what happens to the session; nil is silence.
	Log *slog.Logger
}

// Plugin is the connection to one runtime, over all of its sessions. A nil Plugin knows nothing and is ready. Several
// goroutines may use it.
type Plugin struct {
	o Options

	mu      sync.Mutex
	session *session
	why     error // why there is no session
	known   map[string]known
	figures Figures
	changed func()
	resized Resized
	// generation counts the events.
	generation uint64
}

// Figures are counters since the start of the process.
type Figures struct {
	// Live reports a session whose containers are known.
	Live bool
	// Containers are those that the runtime named.
	Containers int
	// Sessions counts the sessions that became live, Resizes the updates by others than us.
	Sessions, Resizes uint64
	// Updates counts our updates by what came of them.
	Updates map[Outcome]uint64
}

// Outcome is what came of an update.
type Outcome string

// The outcomes.
const (
	Applied Outcome = "applied" // the kernel has the value
	Ignored Outcome = "ignored" // the runtime said yes, and the kernel has another value
	Refused Outcome = "refused" // the runtime said no
)

// Outcomes lists all of them.
func Outcomes() []Outcome { return []Outcome{Applied, Ignored, Refused} }

// New returns a plugin that has not dialled yet.
func New(o Options) *Plugin {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Plugin{o: o, known: map[string]known{}, why: errors.New("not tried yet"), figures: Figures{Updates: map[Outcome]uint64{}}}
}

// Run keeps a session until ctx ends, and then returns nil. changed is called after containers came, went or were updated
// by others; it must not wait.
func (p *Plugin) Run(ctx context.Context, changed func()) error {
	p.mu.Lock()
	p.changed = changed
	p.mu.Unlock()
	pause, told := firstPause, false
	for ctx.Err() == nil {
		s, err := p.start(ctx)
		if err == nil {
			pause, told = firstPause, false
			select {
			case <-ctx.Done():
			case <-s.over:
			}
			s.end()
			err = errors.New("the runtime closed the connection")
		}
		if ctx.Err() != nil {
			break
		}
		p.lost(err)
		if absent := errors.Is(err, fs.ErrNotExist); !told && !(absent && p.o.Optional) {
			p.o.Log.Warn("no NRI session: dialling again; names and settings come from files meanwhile", "socket", p.o.Socket, "error", err)
			told = true
		}
		clock.Sleep(ctx, pause)
		pause = min(2*pause, longestPause)
	}
	p.lost(context.Canceled)
	return nil
}

// lost notes that there is no session. What is known of containers stays, as names do not change.
func (p *Plugin) lost(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session, p.why, p.figures.Live = nil, why, false
}

// Ready returns nil while there is a live session, or where none is wanted: an optional socket that is not there.
func (p *Plugin) Ready() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	live, why := p.figures.Live, p.why
	p.mu.Unlock()
	if live {
		return nil
	}
	if _, err := os.Lstat(p.o.Socket); p.o.Optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("no NRI session at %s: %w", p.o.Socket, why)
}

// Figures returns the counters.
func (p *Plugin) Figures() Figures {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.figures
	f.Containers, f.Updates = len(p.known), maps.Clone(f.Updates)
	return f
}

// Names returns what the runtime calls a container, by its id.
func (p *Plugin) Names(id string) (names.Names, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k, ok := p.known[id]
	return k.names, ok
}

// Labels are those of a container's pod; nil where they are not known. They must not be changed.
func (p *Plugin) Labels(id string) map[string]string {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[id].labels
}

// Annotations are those of a container's pod that begin with Options.AnnotationPrefix, as they were when the pod was made:
// texts of strangers. nil: there are none, or they are not known. They must not be changed.
func (p *Plugin) Annotations(id string) map[string]string {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[id].annotations
}

// Generation changes with each event of the runtime: what was known of containers before may be out of date.
func (p *Plugin) Generation() uint64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.generation
}

// updater is the runtime's side of a session.
type updater interface {
	UpdateContainers([]*api.ContainerUpdate) (failed []*api.ContainerUpdate, err error)
}

// session is one connection.
type session struct {
	updater
	conn io.Closer
	over chan struct{} // closed with the connection
	once sync.Once
}

// end closes the connection.
func (s *session) end() {
	s.once.Do(func() { close(s.over) })
	s.conn.Close()
}

// start dials and registers. The session is live once the runtime has listed its containers.
func (p *Plugin) start(ctx context.Context) (*session, error) {
	conn, err := (&net.Dialer{Timeout: startTime}).DialContext(ctx, "unix", p.o.Socket)
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn, over: make(chan struct{})}
	plugin, err := stub.New(&handlers{p, s}, stub.WithPluginName(pluginName), stub.WithPluginIdx(pluginIndex), stub.WithConnection(conn),
		stub.WithOnClose(s.end), stub.WithLogger(quiet{p.o.Log}), stub.WithFailurePolicy(&api.FailurePolicy{KeepConnected: true}))
	if err != nil {
		conn.Close()
		return nil, err
	}
	s.updater = plugin
	started := make(chan error, 1)
	go func() { started <- plugin.Start(ctx) }()
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case err = <-started:
	case <-ctx.Done():
		err = ctx.Err()
		s.abandon(started)
	case <-timer.C:
		err = fmt.Errorf("the runtime did not accept the plugin within %v", startTime)
		s.abandon(started)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

// abandon makes a Start return that the runtime does not answer. It does so by itself when its connection closes, unless it
// waits for the runtime's configuration: then it waits without a bound, and is given one.
func (s *session) abandon(started <-chan error) {
	s.conn.Close()
	waiting, ok := s.updater.(api.PluginService)
	if !ok {
		return
	}
	s.once.Do(func() { close(s.over) })
	go func() {
		timer := time.NewTimer(startTime)
		defer timer.Stop()
		select {
		case <-started:
		case <-timer.C:
			_, _ = waiting.Configure(context.Background(), &api.ConfigureRequest{})
		}
	}()
}

// quiet writes the library's messages where only --debug shows them.
type quiet struct{ log *slog.Logger }

func (q quiet) Debugf(context.Context, string, ...any) {}
func (q quiet) Infof(_ context.Context, format string, args ...any) {
	q.log.Debug("NRI: " + fmt.Sprintf(format, args...))
}
func (q quiet) Warnf(ctx context.Context, format string, args ...any)  { q.Infof(ctx, format, args...) }
func (q quiet) Errorf(ctx context.Context, format string, args ...any) { q.Infof(ctx, format, args...) }
