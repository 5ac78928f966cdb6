package resizer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unthrottle/unthrottle/internal/podresize"
	"github.com/unthrottle/unthrottle/internal/podresize/sidecar"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/kubernetes/autoscalers"
)

const (
	// answerIn bounds what is asked of the API server for one answer.
	answerIn = 8 * time.Second
	// conflicts is how often a write is tried again, since the kubelet writes the same object.
	conflicts   = 5
	mostBody    = 1 << 10
	mostMessage = 1000
	component   = "unthrottle-kubernetes"
)

type resizer struct {
	client  kubernetes.Interface
	objects dynamic.Interface
	log     *slog.Logger
}

// Serve answers on a socket until ctx ends. A socket that was left behind makes way.
func Serve(ctx context.Context, socket string, client kubernetes.Interface, objects dynamic.Interface, log *slog.Logger) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		l.Close()
		return err
	}
	log.Info("pods are resized for the agent", "socket", socket)
	server := &http.Server{Handler: New(client, objects, log), ReadTimeout: answerIn, WriteTimeout: 2 * answerIn}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("resizer: %w", err)
	}
	return nil
}

// New answers the agent.
func New(client kubernetes.Interface, objects dynamic.Interface, log *slog.Logger) http.Handler {
	r := &resizer{client, objects, log}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /cpu", r.answer(func(ctx context.Context, at place, _ *http.Request) (any, error) {
		pod, c, err := r.find(ctx, at)
		if err != nil {
			return nil, err
		}
		cpu := cpuOf(pod, c)
		cpu.Autoscaler, cpu.Untold = r.autoscaler(ctx, pod, at)
		return cpu, nil
	}))
	mux.HandleFunc("PUT /cpu", r.answer(func(ctx context.Context, at place, q *http.Request) (any, error) {
		var to sidecar.Resize
		if err := json.NewDecoder(http.MaxBytesReader(nil, q.Body, mostBody)).Decode(&to); err != nil {
			return nil, err
		}
		if _, err := podresize.Parse(to.To.String()); err != nil {
			return nil, err
		}
		return struct{}{}, r.write(ctx, at, to)
	}))
	return mux
}

// place is a container of a pod.
type place struct{ namespace, pod, container string }

// answer writes what do returns; an error's status says which kind it is: see package sidecar.
func (r *resizer) answer(do func(context.Context, place, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		name := q.URL.Query().Get("container")
		if !podresize.IsName(name) {
			http.Error(w, "say ?container=NAMESPACE/POD/CONTAINER", http.StatusBadRequest)
			return
		}
		parts := strings.Split(name, "/")
		ctx, cancel := context.WithTimeout(q.Context(), answerIn)
		defer cancel()
		got, err := do(ctx, place{parts[0], parts[1], parts[2]}, q)
		if err == nil {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(got)
			return
		}
		code := http.StatusBadGateway
		switch {
		case apierrors.IsNotFound(err):
			code = http.StatusNotFound
		case errors.Is(err, podresize.ErrChanged):
			code = http.StatusConflict
		case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
			code = http.StatusForbidden
		}
		r.log.Warn("not done", "method", q.Method, "container", text.Sanitize(name, text.MaxName), "error", err)
		http.Error(w, text.Sanitize(err.Error(), mostMessage), code)
	}
}

// find reads a pod and its container.
func (r *resizer) find(ctx context.Context, at place) (*core.Pod, *core.Container, error) {
	pod, err := r.client.CoreV1().Pods(at.namespace).Get(ctx, at.pod, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	for _, list := range [][]core.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		if i := slices.IndexFunc(list, func(c core.Container) bool { return c.Name == at.container }); i >= 0 {
			return pod, &list[i], nil
		}
	}
	return nil, nil, apierrors.NewNotFound(core.Resource("containers"), at.container)
}

// cpuOf is what spec and status say of a container.
func cpuOf(pod *core.Pod, c *core.Container) podresize.CPU {
	cpu := podresize.CPU{UID: string(pod.UID), Limit: milli(c.Resources.Limits),
		Guaranteed: pod.Status.QOSClass == core.PodQOSGuaranteed,
		Restarts: slices.ContainsFunc(c.ResizePolicy, func(p core.ContainerResizePolicy) bool {
			return p.ResourceName == core.ResourceCPU && p.RestartPolicy == core.RestartContainer
		})}
	if of := pod.Spec.Resources; of != nil {
		_, limit := of.Limits[core.ResourceCPU]
		_, request := of.Requests[core.ResourceCPU]
		cpu.PodLevel = limit || request
	}
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if s.Name != c.Name {
			continue
		}
		_, cpu.ID, _ = strings.Cut(s.ContainerID, "://")
		cpu.Ready = s.Ready && (c.ReadinessProbe != nil || c.StartupProbe != nil)
		if s.Resources != nil {
			cpu.Actual = milli(s.Resources.Limits)
		}
	}
	for _, is := range pod.Status.Conditions {
		if is.Status != core.ConditionTrue || is.ObservedGeneration != 0 && is.ObservedGeneration < pod.Generation {
			continue // of an earlier resize
		}
		switch is.Type {
		case core.PodResizePending:
			cpu.Pending, cpu.Message = is.Reason, text.Sanitize(is.Message, mostMessage)
		case core.PodResizeInProgress:
			cpu.Running = true
			if cpu.Pending == "" {
				cpu.Message = text.Sanitize(is.Message, mostMessage)
			}
		}
	}
	return cpu
}

// autoscaler names the object that resizes a container, or says why that is not known: what is in force can then still be taken back.
func (r *resizer) autoscaler(ctx context.Context, pod *core.Pod, at place) (name, untold string) {
	name, err := autoscalers.Controlling(ctx, r.objects, pod, at.container)
	switch {
	case apierrors.IsForbidden(err):
		untold = fmt.Sprintf("%v; the role of the chart's resize.enabled may list them: upgrade the chart", err)
	case err != nil:
		untold = err.Error()
	}
	return text.Sanitize(name, mostMessage), text.Sanitize(untold, mostMessage)
}

func milli(list core.ResourceList) podresize.Milli { return podresize.Milli(list.Cpu().MilliValue()) }

// write patches the limit, if it is still the one that is expected.
func (r *resizer) write(ctx context.Context, at place, to sidecar.Resize) (err error) {
	for range conflicts {
		var pod *core.Pod
		var c *core.Container
		if pod, c, err = r.find(ctx, at); err != nil {
			return err
		}
		was := cpuOf(pod, c)
		if was.Limit != to.From {
			return podresize.ErrChanged
		}
		limit := core.ResourceList{core.ResourceCPU: *resource.NewMilliQuantity(int64(to.To), resource.DecimalSI)}
		resources := core.ResourceRequirements{Limits: limit}
		if was.Guaranteed && !was.PodLevel {
			resources.Requests = limit
		}
		list := "containers"
		if slices.ContainsFunc(pod.Spec.InitContainers, func(i core.Container) bool { return i.Name == at.container }) {
			list = "initContainers"
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": pod.ResourceVersion,
			"uid": pod.UID},
			"spec": map[string]any{list: []any{map[string]any{"name": at.container, "resources": resources}}}})
		if err != nil {
			return err
		}
		_, err = r.client.CoreV1().Pods(at.namespace).Patch(ctx, at.pod, types.StrategicMergePatchType, patch,
			metav1.PatchOptions{FieldManager: component}, "resize")
		if apierrors.IsConflict(err) {
			continue
		}
		if err == nil {
			r.event(ctx, pod, at, was, to)
		}
		return err
	}
	return err
}

// event tells the pod's owner. That it cannot be written is in the log, and no reason to undo a resize.
func (r *resizer) event(ctx context.Context, pod *core.Pod, at place, was podresize.CPU, to sidecar.Resize) {
	kind, message := core.EventTypeNormal, fmt.Sprintf("unthrottle set %s of container %s from %s to %s",
		podresize.Setting,
		at.container, to.From, to.To)
	if was.Pending != "" {
		kind, message = core.EventTypeWarning, fmt.Sprintf("%s, as the kubelet had not accepted it: %s: %s", message,
			was.Pending,
			was.Message)
	}
	now := metav1.Now()
	_, err := r.client.CoreV1().Events(at.namespace).Create(ctx, &core.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "unthrottle-resize-", Namespace: at.namespace},
		InvolvedObject: core.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: at.namespace, Name: at.pod,
			UID:             pod.UID,
			ResourceVersion: pod.ResourceVersion},
		Type: kind, Reason: "UnthrottleResized", Message: text.Sanitize(message, mostMessage), Count: 1,
		FirstTimestamp: now,
		LastTimestamp:  now, Source: core.EventSource{Component: component}, ReportingController: component,
	}, metav1.CreateOptions{})
	if err != nil {
		r.log.Warn("an event cannot be written", "pod", at.namespace+"/"+at.pod, "error", err)
	}
}
