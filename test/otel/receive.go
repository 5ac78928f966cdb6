package main

import (
	"io"
	"net/http"
	"os"
	"sync"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// receiver takes spans by OTLP over HTTP, and writes them as the collector's file exporter does: a line of JSON for each request.
type receiver struct {
	mu    sync.Mutex
	file  *os.File
	spans int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(io.LimitReader(request.Body, 1<<24))
	if err == nil {
		err = r.take(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := ptraceotlp.NewExportResponse().MarshalProto()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer) // a client that is gone sends again
}

func (r *receiver) take(body []byte) error {
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalProto(body); err != nil {
		return err
	}
	line, err := (&ptrace.JSONMarshaler{}).MarshalTraces(request.Traces())
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans += request.Traces().SpanCount()
	_, err = r.file.Write(append(line, '\n'))
	return err
}
