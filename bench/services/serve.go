package services

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"time"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

//go:embed files
var sources embed.FS

// Service is a running one and its load.
type Service struct {
	// Streams of requests; the first is judged. None: Done is.
	Streams  []loadgen.Stream
	Requests []Request
	// Connections of the client.
	Connections int
	// Disturb runs until ctx ends, such as asking for a save again and again.
	Disturb func(ctx context.Context)
	// Done counts units of work since the start; nil: not counted.
	Done func() float64
}

// values are what the templates of a case may name.
type values struct {
	Dir         string // the service's folder
	Port, Port2 string // of loopback, on which no one else listens
	Addr        string // loopback with the first port
	Setting     string // what the case's Setting is
	Jars        string // the folder of the case's Jars
	Hour        int    // when the current hour began, in seconds since 1970
	HourAgo     int    // an hour before that
	named       map[string]string
}

// Named is a port of loopback of a name, on which nothing else listens. Each use of the name gives the same.
func (v values) Named(name string) (string, error) {
	if port, ok := v.named[name]; ok {
		return port, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	v.named[name] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	return v.named[name], l.Close()
}

// templateFuncs are what they may call.
var templateFuncs = template.FuncMap{
	"source": func(name string) (string, error) {
		text, err := sources.ReadFile("files/" + name)
		return string(text), err
	},
	"page": pageOfText,
	"env":  os.Getenv,
	"add":  func(a, b int) int { return a + b },
	"mul":  func(a, b int) int { return a * b },
	"div":  func(a, b int) int { return a / b },
	"mod":  func(a, b int) int { return a % b },
}

// pageOfText is a page that compresses as pages do.
func pageOfText(bytes int) string {
	chance := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < bytes {
		fmt.Fprintf(&b, "<li id=\"n%d\">item %x of the list</li>\n", b.Len(), chance.Uint32())
	}
	return b.String()
}

// fill fills in a template.
func (v values) fill(text string) (string, error) {
	t, err := template.New("").Funcs(templateFuncs).Parse(text)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = t.Execute(&b, v)
	return b.String(), err
}

// valuesOf are those of a case on a stage.
func (s *Stage) valuesOf(c Case) (v values, err error) {
	v = values{Dir: s.Dir, Setting: c.Setting.Was, Hour: int(time.Now().Truncate(time.Hour).Unix()), named: map[string]string{}}
	v.HourAgo = v.Hour - int(time.Hour.Seconds())
	if s.Advised {
		v.Setting = c.Setting.Advised
	}
	if v.Jars, err = filepath.Abs(filepath.Join(jarsDir, c.Jars)); err != nil {
		return v, err
	}
	for _, port := range []*string{&v.Port, &v.Port2} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return v, err
		}
		defer l.Close() // not before both are found
		*port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	v.Addr = "127.0.0.1:" + v.Port
	return v, nil
}

// request is a request of a case.
func (v values) request(a Ask) (r Request, err error) {
	r = Request{Protocol: cmp.Or(a.Protocol, protocolHTTP), Addr: v.Addr, Keys: a.Keys}
	if a.Port == 2 {
		r.Addr = "127.0.0.1:" + v.Port2
	}
	if a.At != "" {
		port, err := v.Named(a.At)
		if err != nil {
			return r, err
		}
		r.Addr = "127.0.0.1:" + port
	}
	if r.Text, err = v.fill(a.Text); err != nil {
		return r, err
	}
	if r.Protocol == protocolHTTP && strings.HasPrefix(r.Text, "/") {
		r.Text = "http://" + r.Addr + r.Text
	}
	return r, nil
}

// Serve starts the service of a case. It returns when every program answers.
func (s *Stage) Serve(ctx context.Context, c Case) (of Service, err error) {
	v, err := s.valuesOf(c)
	if err != nil {
		return of, err
	}
	for name, text := range c.Files {
		if err := s.file(v, name, text); err != nil {
			return of, fmt.Errorf("%s: %w", name, err)
		}
	}
	if c.Prepare != "" {
		script, err := v.fill(c.Prepare)
		if err != nil {
			return of, err
		}
		if err := s.prepare(ctx, script); err != nil {
			return of, err
		}
	}
	for _, p := range c.Programs {
		if p.Run, err = v.fill(p.Run); err != nil {
			return of, err
		}
		if err := s.start(p); err != nil {
			return of, err
		}
		if err := s.answers(ctx, v, p.Ready...); err != nil {
			return of, err
		}
	}
	of.Connections = c.Connections
	for i, a := range c.Streams {
		r, err := v.request(a.Ask)
		if err != nil {
			return of, err
		}
		if err := s.ready(ctx, r); err != nil {
			return of, err
		}
		of.Streams = append(of.Streams, loadgen.Stream{Name: a.Name, PerSecond: a.PerSecond, Burst: a.Burst,
			Regular: a.Regular, Background: i > 0})
		of.Requests = append(of.Requests, r)
	}
	if len(c.Streams) == 0 {
		of.Done = s.built
	}
	var sending []func(context.Context)
	for _, a := range c.Again {
		r, err := v.request(a.Ask)
		if err != nil {
			return of, err
		}
		send, err := exchangeOf(orderOf(r))
		if err != nil {
			return of, err
		}
		sending = append(sending, func(ctx context.Context) { again(ctx, send, a.Pause) })
	}
	of.Disturb = func(ctx context.Context) {
		var clients sync.WaitGroup
		for _, send := range sending {
			clients.Go(func() { send(ctx) })
		}
		clients.Wait()
	}
	return of, nil
}

// file writes a file into the stage's folder.
func (s *Stage) file(v values, name, text string) error {
	text, err := v.fill(text)
	if err != nil {
		return err
	}
	path := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// answers waits until each request is answered.
func (s *Stage) answers(ctx context.Context, v values, asks ...Ask) error {
	for _, a := range asks {
		r, err := v.request(a)
		if err != nil {
			return err
		}
		if err := s.ready(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// again sends a request again and again, refused or not.
func again(ctx context.Context, send loadgen.Exchange, pause time.Duration) {
	for ctx.Err() == nil {
		_ = send(ctx, 0)
		_ = clock.Sleep(ctx, pause) // an error is the end of ctx
	}
}

// orderOf is a client's that sends one kind of requests over one connection.
func orderOf(r Request) Order {
	return Order{Plan: loadgen.Plan{Streams: make([]loadgen.Stream, 1), Connections: 1}, Requests: []Request{r}}
}

// built counts the lines that units of work left in the file of that name.
func (s *Stage) built() float64 {
	text, _ := os.ReadFile(filepath.Join(s.Dir, "built")) // none yet: nothing was built
	return float64(strings.Count(string(text), "\n"))
}
