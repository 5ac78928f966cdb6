package podprobes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net/http"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/unthrottle/unthrottle/internal/agent/answers"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/kubernetes/controller"
)

// Options of Run.
type Options struct {
	Client kubernetes.Interface
	// Node is the one whose pods are told.
	Node string
	// Out is the file that the agent reads, Agent its URL.
	Out, Agent string
	// LeastInterval is between two writes of the file, AskInterval between two questions for findings.
	LeastInterval, AskInterval time.Duration
	Log                        *slog.Logger
}

const (
	// DefaultAgent is the agent's URL in its pod.
	DefaultAgent = "http://127.0.0.1:9469"
	// Reason is that of the events of probes. Those of trials are in reasons.
	Reason = "ProbeMissesByQuota"
	// maxMessage bounds an event's message in bytes; the API allows 1,024.
	maxMessage = 1000
	// mostBytes of an answer are read, answerIn is how long it may take.
	mostBytes = 2 << 20
	answerIn  = 30 * time.Second
	component = "unthrottle-kubernetes"
)

// teller is Run at work.
type teller struct {
	Options
	pods    cache.SharedIndexInformer
	ends    Ends
	written []byte
	// told are the events of the last two days that are made, by name.
	told map[string]time.Time
	// silent is why the agent was not understood last.
	silent string
}

// Run keeps the file, and makes events, until ctx ends.
func Run(ctx context.Context, o Options) error {
	t := &teller{Options: o, ends: Ends{}, told: map[string]time.Time{}}
	wake := make(chan struct{}, 1)
	changed := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	if err := t.watch(changed); err != nil {
		return err
	}
	go t.pods.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), t.pods.HasSynced) {
		return nil
	}
	changed() // a node without pods has no change
	ask := time.NewTicker(o.AskInterval)
	defer ask.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ask.C:
			t.write(time.Now()) // again, if it could not be written
			t.ask(ctx, time.Now())
		case <-wake:
			t.write(time.Now())
			select { // what changes together is one write
			case <-ctx.Done():
				return nil
			case <-time.After(o.LeastInterval):
			}
		}
	}
}

// watch makes the informer of the node's pods.
func (t *teller) watch(changed func()) error {
	of := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", t.Node).String()
		return o
	}
	pods := t.Client.CoreV1().Pods(metav1.NamespaceAll)
	t.pods = cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return pods.List(ctx, of(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return pods.Watch(ctx, of(o))
		},
	}, t.Client), &core.Pod{}, 0, nil)
	if err := t.pods.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		t.Log.Warn("the node's pods cannot be read; what was known of their probes stays", "error", err)
	}); err != nil {
		return err
	}
	if err := t.pods.SetTransform(needed); err != nil {
		return err
	}
	signal := func(any) { changed() }
	_, err := t.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: signal,
		UpdateFunc: func(_, of any) { signal(of) }, DeleteFunc: signal})
	return err
}

// needed drops all of a pod that is not needed: its environment may hold secrets, and takes memory.
func needed(of any) (any, error) {
	pod, ok := of.(*core.Pod)
	if !ok {
		return of, nil
	}
	bare := func(all []core.Container) (out []core.Container) {
		for _, c := range all {
			out = append(out, core.Container{Name: c.Name, RestartPolicy: c.RestartPolicy,
				LivenessProbe:  c.LivenessProbe,
				ReadinessProbe: c.ReadinessProbe})
		}
		return out
	}
	var mirrors map[string]string
	if hash := pod.Annotations[core.MirrorPodAnnotationKey]; hash != "" {
		mirrors = map[string]string{core.MirrorPodAnnotationKey: hash}
	}
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID,
			ResourceVersion: pod.ResourceVersion, Annotations: mirrors},
		Spec: core.PodSpec{NodeName: pod.Spec.NodeName, Containers: bare(pod.Spec.Containers),
			InitContainers: bare(pod.Spec.InitContainers)},
		Status: core.PodStatus{Phase: pod.Status.Phase, ContainerStatuses: pod.Status.ContainerStatuses,
			InitContainerStatuses: pod.Status.InitContainerStatuses},
	}, nil
}

// known are the node's pods as they were seen last.
func (t *teller) known() (pods []*core.Pod) {
	for _, of := range t.pods.GetStore().List() {
		if pod, ok := of.(*core.Pod); ok && pod.Spec.NodeName == t.Node {
			pods = append(pods, pod)
		}
	}
	return pods
}

// write writes the file if it changes.
func (t *teller) write(now time.Time) {
	pods := Of(t.known(), t.ends, now)
	file, err := json.Marshal(pods)
	if err == nil && bytes.Equal(file, t.written) {
		return
	}
	if err == nil {
		err = controller.WriteFile(t.Out, file)
	}
	if err != nil {
		t.Log.Error("the file of the node's pods cannot be written; the one before stays", "error", err)
		return
	}
	if t.written = file; pods.LeftOut > 0 {
		t.Log.Warn("the agent is not told of all containers with probes", "left_out", pods.LeftOut)
	}
}

// reasons are those of the events of what came of a trial that the agent spread over hours.
var reasons = map[string]string{answers.TrialKept: "RemedyKept", answers.TrialNone: "NoRemedyKept", answers.TrialUseless: "RemedyTakenBack"}

// told is what becomes an event of a container of a pod, by the uid that the agent knows the pod by.
type told struct {
	namespace, pod, uid, container string
	// kind begins the event's name, and key tells it apart from others of the container.
	kind, key       string
	warning         bool
	reason, message string
}

// ask asks the agent what it found of probes and what came of trials, and makes events of it.
func (t *teller) ask(ctx context.Context, now time.Time) {
	var probes answers.Probes
	err := t.answer(ctx, "/probes", answers.ProbesSchema, &probes)
	var all []told
	for _, f := range probes.Findings { // once a day
		all = append(all, told{f.Namespace, f.Pod, f.UID, f.Container, "probe",
			fmt.Sprintf("%q %s", f.Probe.Probe, now.UTC().Format(time.DateOnly)), true, Reason, f.Says})
	}
	var trials answers.Trials
	err = errors.Join(err, t.answer(ctx, "/trials", answers.TrialsSchema, &trials))
	for _, e := range trials.Ended {
		if reason := reasons[e.Outcome]; reason != "" && now.Sub(e.At) < 24*time.Hour { // told is forgotten after two days
			all = append(all, told{e.Namespace, e.Pod, e.UID, e.Container, "trial", e.At.UTC().Format(time.RFC3339Nano),
				e.Outcome == answers.TrialUseless, reason, e.Says})
		}
	}
	for _, one := range all {
		if failed := t.event(ctx, one, now); err == nil {
			err = failed
		}
	}
	for name, at := range t.told {
		if now.Sub(at) >= 48*time.Hour {
			delete(t.told, name)
		}
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		t.silent = ""
	case t.silent != err.Error():
		t.silent = err.Error()
		t.Log.Warn("what the agent finds becomes no events", "error", err)
	}
}

// answer asks the agent for a document of a schema. One of another schema or version is not read.
func (t *teller) answer(ctx context.Context, path, schema string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.Agent+path, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the agent answers %s to %s: use one version of both images", answer.Status, path)
	}
	var raw json.RawMessage
	var head struct {
		Schema  string `json:"schema"`
		Version int    `json:"version"`
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, mostBytes)).Decode(&raw)
	if err == nil {
		err = json.Unmarshal(raw, &head)
	}
	if err == nil && (head.Schema != schema || head.Version != answers.Version) {
		return fmt.Errorf("the agent's answer to %s is of another version: use one version of both images", path)
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return fmt.Errorf("the agent's answer to %s: %w", path, err)
	}
	return nil
}

// uidOf is the UID in the API of a pod of the node; "": it is not there. A node knows a static pod by a hash. The pod that mirrors it in
// the API has that hash as an annotation, and another UID.
func (t *teller) uidOf(of told) types.UID {
	for _, pod := range t.known() {
		if of.uid != "" && (string(pod.UID) == of.uid || pod.Annotations[core.MirrorPodAnnotationKey] == of.uid) &&
			pod.Name == of.pod && pod.Namespace == of.namespace {
			return pod.UID
		}
	}
	return ""
}

// event tells a pod of the node, once.
func (t *teller) event(ctx context.Context, of told, now time.Time) error {
	uid := t.uidOf(of)
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%q %q %s", of.uid, of.container, of.key)
	name := fmt.Sprintf("unthrottle-%s-%016x", of.kind, hash.Sum64())
	if _, known := t.told[name]; known || uid == "" {
		return nil
	}
	kind := core.EventTypeNormal
	if of.warning {
		kind = core.EventTypeWarning
	}
	at := metav1.NewTime(now)
	_, err := t.Client.CoreV1().Events(of.namespace).Create(ctx, &core.Event{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: of.namespace},
		InvolvedObject: core.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: of.namespace, Name: of.pod,
			UID: uid, FieldPath: "spec.containers{" + of.container + "}"},
		Type: kind, Reason: of.reason, Message: text.Sanitize(of.message, maxMessage), Count: 1,
		FirstTimestamp: at, LastTimestamp: at, Source: core.EventSource{Component: component, Host: t.Node},
		ReportingController: component, ReportingInstance: t.Node,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
		return err
	}
	t.told[name] = now
	return nil
}
