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
	"github.com/unthrottle/unthrottle/internal/agent/spent"
	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/policy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/flightrecorder"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/txn"
)

// reading is an agent that has seen one container, holds one change and keeps one recording, on its socket.
func reading(t *testing.T) (*agent, *http.Client) {
	t.Helper()
	a := readAgent(t)
	a.Answers = filepath.Join(t.TempDir(), "agent.sock")
	return a, serveSocket(t, a)
}

// readAgent is that agent, not yet asked.
func readAgent(t *testing.T) *agent {
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
	a.chooser = newChooser(a.Rules, "")
	return a
}

func getBy(t *testing.T, client *http.Client, url string) (status int, body string) {
	t.Helper()
	answer, err := client.Get(url)
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
	a, client := reading(t)
	var seen answers.Containers
	_, body := getBy(t, client, "http://agent/containers")
	if err := json.Unmarshal([]byte(body), &seen); err != nil || seen.Schema != "ls" || len(seen.Containers) != 1 ||
		*seen.Containers[0].Pod != "cart-0" || *seen.Containers[0].UsedCPUs != 0.5 {
		t.Errorf("/containers: %s, %v", body, err)
	}
	var status answers.Status
	_, body = getBy(t, client, "http://agent/status")
	if err := json.Unmarshal([]byte(body), &status); err != nil || status.Agent.Version != "1.2" ||
		status.NotHealthy != nil || len(status.InForce) != 1 || !status.InForce[0].OnTrial {
		t.Errorf("/status: %s, %v", body, err)
	}
	var kept answers.Recordings
	for range 2 { // the second time, headers are known
		_, body = getBy(t, client, "http://agent/recordings")
		if err := json.Unmarshal([]byte(body), &kept); err != nil || len(kept.Recordings) != 1 || *kept.Recordings[0].Namespace != "shop" {
			t.Fatalf("/recordings: %s, %v", body, err)
		}
	}
	code, body := getBy(t, client, "http://agent/recordings/"+kept.Recordings[0].File)
	if in, err := recording.Read(strings.NewReader(body)); code != http.StatusOK || err != nil || in.Header.Target.Pod != "cart-0" {
		t.Errorf("the recording: %d, %v", code, err)
	}
	for _, name := range []string{"..", "..%2f..%2fetc%2fpasswd", "nothing.recording", ".part"} {
		if code, body := getBy(t, client, "http://agent/recordings/"+name); code == http.StatusOK &&
			strings.Contains(body, "root:") || code != http.StatusNotFound && name != ".." {
			t.Errorf("/recordings/%s: %d %s", name, code, body)
		}
	}
	if answer, err := client.Post("http://agent/status", "", nil); err != nil || answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %v, %v", answer, err)
	}
	if a.spent.Seconds()[spent.Metrics.String()] <= 0 {
		t.Error("the answers cost nothing, by the agent's own account")
	}
}

// askedAt is a request that came to an address of this host; nil: not known.
func askedAt(path string, at net.Addr) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, at))
}

// TestReadingAnswersOnLoopbackOnly: in a pod the agent listens on the pod's address too, which other pods reach. Recordings answer on
// no address.
func TestReadingAnswersOnLoopbackOnly(t *testing.T) {
	a := readAgent(t)
	kept, err := a.keptRecordings()
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	mux := http.NewServeMux()
	a.handle(mux, &a.spent)
	for path, onLoopback := range map[string]int{"/containers": http.StatusOK, "/status": http.StatusOK,
		"/recordings": http.StatusForbidden, "/recordings/" + kept[0].File: http.StatusForbidden} {
		for at, want := range map[net.Addr]int{
			&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}: onLoopback,
			&net.TCPAddr{IP: net.IPv6loopback}:       onLoopback,
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

// TestTheSocketTakesNoFilesPlace, but that of a socket which an agent that was killed left behind.
func TestTheSocketTakesNoFilesPlace(t *testing.T) {
	a := &agent{}
	a.Answers = filepath.Join(t.TempDir(), "agent.sock")
	if err := os.WriteFile(a.Answers, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.serveAnswers(t.Context()); err == nil || !strings.Contains(err.Error(), "is no socket") {
		t.Errorf("it takes the place of a file: %v", err)
	}
	if err := os.Remove(a.Answers); err != nil {
		t.Fatal(err)
	}
	left, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", a.Answers)
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	left.Close()
	if code, body := getBy(t, serveSocket(t, a), "http://agent/containers"); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
}

// TestReadingIsBounded: beyond the most answers under way, a client is sent away, and a turn comes back. Slow readers of
// recordings hold up no other answer.
func TestReadingIsBounded(t *testing.T) {
	a := &agent{Config: Config{Answers: "/agent.sock"}}
	mux := http.NewServeMux()
	a.handle(mux, &a.spent)
	codes := make(chan int)
	ask := func(path string, n int) {
		for range n {
			go func() {
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, askedAt(path, &net.UnixAddr{Name: a.Answers, Net: "unix"}))
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
	socket := &net.UnixAddr{Name: a.Answers, Net: "unix"}
	release := make(chan struct{})
	sent := make(chan struct{})
	for range answers.MostAtOnce {
		go func() {
			mux.ServeHTTP(&slowLine{ResponseRecorder: httptest.NewRecorder(), begun: sent, release: release}, askedAt(recorded, socket))
			sent <- struct{}{}
		}()
	}
	for range answers.MostAtOnce {
		<-sent
	}
	for path, want := range map[string]int{"/containers": http.StatusOK, "/status": http.StatusOK,
		recorded: http.StatusServiceUnavailable} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, askedAt(path, socket))
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
