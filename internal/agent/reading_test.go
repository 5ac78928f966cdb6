package agent

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// reading is an agent that has seen one container, holds one change and keeps one recording; and its pages.
func reading(t *testing.T) (*agent, *httptest.Server) {
	t.Helper()
	a := &agent{lastRound: time.Now(), Config: Config{Version: "1.2", Rules: policy.Rules{Mode: policy.Observe, Interval: time.Second}}}
	a.shown = []observe.Observation{{Container: container.Container{Name: "shop/cart-0/app", Namespace: "shop",
		Pod: "cart-0", ContainerName: "app",
		Group: cgroup.Group{Path: "/kubepods/cart"}}, Window: time.Second, UsedCPUs: new(0.5)}}
	a.heldShown = []txn.InForce{{ID: "7", Target: "/kubepods/cart", Name: "shop/cart-0/app", Remedy: "burst", Trial: &txn.Trial{}}}
	a.recorder = &recorder{agent: a, store: flightrecorder.Store{Dir: t.TempDir()}}
	_, _, err := a.recorder.store.Save(time.Now(), 7, func(w io.Writer) error {
		out, err := recording.NewWriter(w,
			recording.Header{Target: recording.Target{Path: "/kubepods/cart", Name: "shop/cart-0/app", ID: 7,
				Namespace: "shop", Pod: "cart-0", Container: "app"}})
		if err != nil {
			return err
		}
		return out.Close(recording.Footer{EndNS: 1})
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	a.handle(mux, &a.spent)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return a, server
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

func TestReading(t *testing.T) {
	a, server := reading(t)
	var seen answers.Containers
	_, body := get(t, server.URL+"/containers")
	if err := json.Unmarshal([]byte(body), &seen); err != nil || seen.Schema != "ls" || len(seen.Containers) != 1 ||
		*seen.Containers[0].Pod != "cart-0" || *seen.Containers[0].UsedCPUs != 0.5 {
		t.Errorf("/containers: %s, %v", body, err)
	}
	var status answers.Status
	_, body = get(t, server.URL+"/status")
	if err := json.Unmarshal([]byte(body), &status); err != nil || status.Agent.Version != "1.2" ||
		status.NotHealthy != nil || len(status.InForce) != 1 || !status.InForce[0].OnTrial {
		t.Errorf("/status: %s, %v", body, err)
	}
	var kept answers.Recordings
	for range 2 { // the second time, headers are known
		_, body = get(t, server.URL+"/recordings")
		if err := json.Unmarshal([]byte(body), &kept); err != nil || len(kept.Recordings) != 1 || *kept.Recordings[0].Namespace != "shop" {
			t.Fatalf("/recordings: %s, %v", body, err)
		}
	}
	code, body := get(t, server.URL+"/recordings/"+kept.Recordings[0].File)
	if in, err := recording.Read(strings.NewReader(body)); code != http.StatusOK || err != nil || in.Header.Target.Pod != "cart-0" {
		t.Errorf("the recording: %d, %v", code, err)
	}
	for _, name := range []string{"..", "..%2f..%2fetc%2fpasswd", "nothing.recording", ".part"} {
		if code, body := get(t, server.URL+"/recordings/"+name); code == http.StatusOK &&
			strings.Contains(body, "root:") || code != http.StatusNotFound && name != ".." {
			t.Errorf("/recordings/%s: %d %s", name, code, body)
		}
	}
	if answer, err := http.Post(server.URL+"/status", "", nil); err != nil || answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %v, %v", answer, err)
	}
	if a.spent.seconds()[partMetrics.String()] <= 0 {
		t.Error("the answers cost nothing, by the agent's own account")
	}
}

// askedAt is a request that came to an address of this host; nil: not known.
func askedAt(path string, at net.Addr) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
}

// TestReadingAnswersOnLoopbackOnly: in a pod the agent listens on the pod's address too, which other pods reach.
func TestReadingAnswersOnLoopbackOnly(t *testing.T) {
	a, _ := reading(t)
	kept, err := a.keptRecordings()
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	mux := http.NewServeMux()
	a.handle(mux, &a.spent)
	for _, path := range []string{"/containers", "/status", "/recordings", "/recordings/" + kept[0].File} {
		for at, want := range map[net.Addr]int{
			&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}: http.StatusOK,
			&net.TCPAddr{IP: net.IPv6loopback}:       http.StatusOK,
			&net.TCPAddr{IP: net.IPv4(10, 1, 2, 3)}:  http.StatusForbidden,
			&net.TCPAddr{IP: net.ParseIP("fd00::1")}: http.StatusForbidden,
			&net.UnixAddr{Name: "/x", Net: "unix"}:   http.StatusForbidden,
			nil:                                      http.StatusForbidden,
		} {
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, askedAt(path, at))
			if w.Code != want || want == http.StatusForbidden && strings.Contains(w.Body.String(), "cart") {
				t.Errorf("%s at %v: %d %.80s, want %d", path, at, w.Code, w.Body, want)
			}
		}
	}
}

// TestReadingOnASocketOnly: with a socket for them, the answers are on no address: a port-forward reaches loopback.
func TestReadingOnASocketOnly(t *testing.T) {
	a, server := reading(t)
	a.Answers = filepath.Join(t.TempDir(), "agent.sock")
	a.chooser = newChooser(a.Rules, "")
	kept, err := a.keptRecordings()
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	if err := os.WriteFile(a.Answers, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.serveAnswers(t.Context()); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("it takes the place of a file: %v", err)
	}
	if err := os.Remove(a.Answers); err != nil {
		t.Fatal(err)
	}
	left, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", a.Answers) // an agent that was killed leaves its socket behind
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	left.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.serveAnswers(ctx) }()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", a.Answers)
		}}}
	for _, path := range []string{"/containers", "/policy", "/status", "/recordings", "/recordings/" + kept[0].File} {
		var answer *http.Response
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if answer, err = client.Get("http://agent" + path); err == nil {
				break
			}
		}
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s on the socket: %v, %v", path, answer, err)
		}
		answer.Body.Close()
		if code, body := get(t, server.URL+path); path != "/policy" && (code != http.StatusForbidden || strings.Contains(body, "cart")) {
			t.Errorf("%s on loopback beside the socket: %d %s", path, code, body)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// TestReadingIsBounded: beyond the most answers under way, a client is sent away, and a turn comes back. Slow readers of
// recordings hold up no other answer.
func TestReadingIsBounded(t *testing.T) {
	a := &agent{}
	mux := http.NewServeMux()
	a.handle(mux, &a.spent)
	codes := make(chan int)
	ask := func(path string, n int) {
		for range n {
			go func() {
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, askedAt(path, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))
				codes <- w.Code
			}()
		}
	}
	gets := func(n, want int) {
		t.Helper()
		for range n {
			if code := <-codes; code != want {
				t.Errorf("%d instead of %d", code, want)
			}
		}
	}
	a.mu.Lock() // each /containers waits for it
	ask("/containers", answers.MostAtOnce+3)
	gets(3, http.StatusServiceUnavailable)
	ask("/recordings/a", 1) // which have turns of their own
	gets(1, http.StatusNotFound)
	a.mu.Unlock()
	gets(answers.MostAtOnce, http.StatusOK)
}

// Recordings that are sent over a slow line leave room for the other answers.
func TestSlowReadersOfRecordingsHoldNobodyUp(t *testing.T) {
	a, _ := reading(t)
	kept, err := a.keptRecordings()
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	recorded := "/recordings/" + kept[0].File
	mux := http.NewServeMux()
	a.handle(mux, &a.spent)
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	release := make(chan struct{})
	sent := make(chan struct{})
	for range answers.MostAtOnce {
		go func() {
			mux.ServeHTTP(&slowLine{ResponseRecorder: httptest.NewRecorder(), begun: sent, release: release}, askedAt(recorded, loopback))
			sent <- struct{}{}
		}()
	}
	for range answers.MostAtOnce {
		<-sent
	}
	for path, want := range map[string]int{"/containers": http.StatusOK, "/status": http.StatusOK,
		recorded: http.StatusServiceUnavailable} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, askedAt(path, loopback))
		if w.Code != want {
			t.Errorf("%s: %d instead of %d", path, w.Code, want)
		}
	}
	close(release)
	for range answers.MostAtOnce {
		<-sent
	}
}

// slowLine takes nothing until it is released.
type slowLine struct {
	*httptest.ResponseRecorder
	begun   chan<- struct{}
	release <-chan struct{}
	once    sync.Once
}

func (l *slowLine) Write(p []byte) (int, error) {
	l.once.Do(func() {
		l.begun <- struct{}{}
		<-l.release
	})
	return l.ResponseRecorder.Write(p)
}
