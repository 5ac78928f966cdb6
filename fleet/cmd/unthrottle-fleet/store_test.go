package main

import (
	"bytes"
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"golang.org/x/sys/unix"
)

// stored puts what is below a folder into a store, and sets the environment that leads there. before sees each request.
func stored(t *testing.T, dir string, before func(r *http.Request)) {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			_, err = backend.PutObject("bucket", "fleet/"+name,
				map[string]string{"Last-Modified": "Wed, 25 Nov 2026 12:00:00 GMT"}, bytes.NewReader(content), int64(len(content)), nil)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	handler := gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil {
			before(r)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ENDPOINT_URL_S3": "",
		"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": ""} {
		t.Setenv(name, value)
	}
}

// The report on a store is the one on the folder that was copied there, and calls files what the store does. Nothing of
// them stays.
func TestReportOnAStore(t *testing.T) {
	dir := rows(t, 6)
	for name, content := range map[string]string{"cut.parquet": "PAR1", "n9.parquet.damaged": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored(t, dir, nil)
	folder, err := called(t, "report", dir, "--json")
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	store, err := called(t, "report", "s3://bucket/fleet", "--json")
	if err != nil {
		t.Fatal(err)
	}
	validated(t, "fleet_report", store)
	if want := strings.ReplaceAll(folder, dir+"/", "s3://bucket/fleet/"); store != want {
		t.Errorf("%s\nnot\n%s", store, want)
	}
	if !strings.Contains(store, "s3://bucket/fleet/cut.parquet") ||
		!strings.Contains(store, "s3://bucket/fleet/n9.parquet.damaged") || strings.Contains(store, temp) {
		t.Errorf("%s", store)
	}
	if names := left(t, temp); len(names) != 0 {
		t.Errorf("left: %q", names)
	}
	for _, c := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"report", "s3://bucket/none"}, "s3://bucket/none has no file of rows (*.parquet): copy there what", exitNotMeasurable},
		{[]string{"plan", "s3://bucket/fleet"}, "do not tell their CPUs and memory", exitNotMeasurable},
		{[]string{"report", "s3://another/fleet"}, `no such bucket "another"`, exitFailure},
	} {
		if _, err := called(t, c.args...); err == nil || !strings.Contains(err.Error(), c.says) || exitCode(err, false) != c.code {
			t.Errorf("%q: %v", c.args, err)
		}
	}
	if names := left(t, temp); len(names) != 0 {
		t.Errorf("left: %q", names)
	}
}

// Spark on this machine gets the files that were fetched. What it cannot read has its name in the store.
func TestStoreOnSpark(t *testing.T) {
	dir, bin := rows(t, 3), t.TempDir()
	stored(t, dir, nil)
	job := filepath.Join(bin, "job.json")
	for name, script := range map[string]string{
		"java": "", "spark-submit": `for last in "$@"; do :; done; cp "$last" '` + job + `'; exit 3`} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("SPARK_HOME", "")
	t.Setenv("JAVA_HOME", "")
	if _, err := called(t, "report", "s3://bucket/fleet", "--on", "local[1]"); err == nil ||
		!strings.Contains(err.Error(), "Spark on local[1]") {
		t.Errorf("%v", err)
	}
	text, err := os.ReadFile(job)
	if err != nil || strings.Count(string(text), "/fetched/000000") < 3 || strings.Contains(string(text), "s3") {
		t.Errorf("%v: %s", err, text)
	}
}

// An interrupt while files are fetched ends the run with its code, and nothing of them stays.
func TestInterruptedFetch(t *testing.T) {
	temp, asked := t.TempDir(), make(chan struct{}, 100)
	stored(t, rows(t, 3), func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".parquet") {
			asked <- struct{}{}
			<-r.Context().Done()
		}
	})
	run := program(t, temp, "report", "s3://bucket/fleet")
	var says bytes.Buffer
	run.Stderr = &says
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case <-asked:
	case <-ctx.Done():
		t.Error("nothing is fetched")
	}
	if err := run.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait()
	if code := run.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(says.String(), "interrupted") {
		t.Errorf("exit code %d: %s", code, &says)
	}
	if names := left(t, temp); len(names) != 0 {
		t.Errorf("left: %q", names)
	}
}
