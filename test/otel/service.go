package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/sys/unix"
)

// serviceName is the service.name of the service's resource.
const serviceName = "cart"

// cpuKey is the attribute with the CPU time of a span's thread, in milliseconds.
const cpuKey = "test.cpu_ms"

// service serves requests that burn CPU time, with a span for each and one within, and sends the spans to an endpoint.
func service(endpoint string) error {
	ctx := context.Background()
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return err
	}
	// Batches are sent every 200 ms: the client asks for the last ones by /flush.
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter, trace.WithBatchTimeout(200*time.Millisecond)),
		trace.WithResource(resource.NewSchemaless(attribute.String("service.name", serviceName))))
	tracer := provider.Tracer("otel")
	mux := http.NewServeMux()
	mux.HandleFunc("/burn", func(w http.ResponseWriter, r *http.Request) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		burn, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		before := threadCPU()
		ctx, whole := tracer.Start(r.Context(), "burn")
		spin(before + burn/2)
		middle := threadCPU()
		_, second := tracer.Start(ctx, "second half")
		spin(before + burn)
		second.SetAttributes(attribute.Float64(cpuKey, milliseconds(threadCPU()-middle)))
		second.End()
		whole.SetAttributes(attribute.Float64(cpuKey, milliseconds(threadCPU()-before)))
		whole.End()
	})
	mux.HandleFunc("/flush", func(w http.ResponseWriter, r *http.Request) {
		if err := provider.ForceFlush(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return http.Serve(l, mux)
}

// spin spends CPU time until the thread has had so much.
func spin(until time.Duration) {
	for threadCPU() < until {
		for range 1000 { // the clock costs a system call
			runtime.KeepAlive(until)
		}
	}
}

// threadCPU is the CPU time of this thread.
func threadCPU() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // every Linux has the clock
	}
	return time.Duration(t.Nano())
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }
