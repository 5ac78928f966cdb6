package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/progress"
)

const (
	// lookPrefix begins the names of the ephemeral containers.
	lookPrefix = "unthrottle-look-"
	// agentContainer is the agent's in its pod, whose image has the same program.
	agentContainer = "agent"
	// lookStarts is how long an image may take to be there and its container to start.
	lookStarts = 3 * time.Minute
	// mostLine bounds a line of a report, in bytes.
	mostLine = 16 << 20
)

// look is what the command was asked for.
type look struct {
	*plugin
	image  string
	length time.Duration
	pid    int
	user   int64
}

func (p *plugin) newLook() *cobra.Command {
	l := &look{plugin: p}
	cmd := p.addPod(&cobra.Command{
		Use:   "look POD",
		Short: "Say why a pod is stopped, without an agent or rights on its node",
		Long: `Say why a pod is stopped, by whose quota, and which pool of threads spent it,
without an agent and without rights on the node.

An ephemeral container under Pod Security 'restricted' joins the process namespace
of the container, samples its threads and counters as the same user, and ends by
itself. It needs the right 'update' on pods/ephemeralcontainers, and 'get' on
pods/log. Ephemeral containers stay in the pod's description until the pod goes.`,
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd.Context(), args[0]) },
	})
	flags := cmd.Flags()
	flags.StringVar(&l.image, "image", "", "`IMAGE` with unthrottle; the agent's, where one runs in the cluster, without it")
	flags.DurationVar(&l.length, "for", 45*time.Second, "how `LONG` it looks at most")
	flags.IntVar(&l.pid, "pid", 1, "`PID` in the container's process namespace")
	flags.Int64Var(&l.user, "user", -1, "`UID` to look as; that of the container without it")
	return cmd
}

func (l *look) run(ctx context.Context, name string) error {
	if l.length < live.MinRecording || l.length > live.MostLook {
		return fmt.Errorf("--for %s: give a time from %s to %s", l.length, live.MinRecording, live.MostLook)
	}
	c, err := l.connect()
	if err != nil {
		return err
	}
	pod, err := c.pod(ctx, name)
	if err != nil {
		return err
	}
	target, err := chosenContainer(pod, l.container)
	if err != nil {
		return err
	}
	if l.image == "" {
		if l.image, err = c.agentImage(ctx); err != nil {
			return err
		}
	}
	made, err := l.begin(ctx, c, pod, target)
	if err != nil {
		return err
	}
	fmt.Fprintf(l.ErrOut, "looking at container %s of pod %s/%s for %s at most, in the ephemeral container %s\n", target.Name, pod.Namespace,
		pod.Name, l.length, made)
	if err := l.started(ctx, c, pod, made); err != nil {
		return err
	}
	if err := l.copy(ctx, c, pod, made); err != nil {
		return err
	}
	return l.ended(ctx, c, pod, made)
}

// chosenContainer is the container of a name, or the only one.
func chosenContainer(pod *core.Pod, name string) (*core.Container, error) {
	var names []string
	for i := range pod.Spec.Containers {
		if names = append(names, pod.Spec.Containers[i].Name); names[i] == name || name == "" && len(pod.Spec.Containers) == 1 {
			return &pod.Spec.Containers[i], nil
		}
	}
	for i := range pod.Spec.InitContainers { // those that stay beside the others
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy == nil || *c.RestartPolicy != core.ContainerRestartPolicyAlways {
			continue
		}
		if names = append(names, c.Name); c.Name == name {
			return c, nil
		}
	}
	if name == "" {
		return nil, fmt.Errorf("pod %s/%s has several containers: give one with -c: %s", pod.Namespace, pod.Name, strings.Join(names, ", "))
	}
	return nil, fmt.Errorf("pod %s/%s has no container %s: it has %s", pod.Namespace, pod.Name, text.Shown(name), strings.Join(names, ", "))
}

// agentImage is the image of an agent in the cluster.
func (c *connected) agentImage(ctx context.Context) (string, error) {
	agents, err := c.agents(ctx, "")
	if err != nil {
		return "", fmt.Errorf("give the image that has unthrottle with --image: none is found here: %w", err)
	}
	for _, a := range agents {
		for _, container := range a.Spec.Containers {
			if container.Name == agentContainer {
				return container.Image, nil
			}
		}
	}
	return "", fmt.Errorf("give the image that has unthrottle with --image: pod %s/%s has no container %s", agents[0].Namespace,
		agents[0].Name, agentContainer)
}

// userOf is the user that a container runs as, as far as its spec says; false: its image says it.
func userOf(pod *core.Pod, of *core.Container) (uid int64, ok bool) {
	if s := of.SecurityContext; s != nil && s.RunAsUser != nil {
		return *s.RunAsUser, true
	}
	if s := pod.Spec.SecurityContext; s != nil && s.RunAsUser != nil {
		return *s.RunAsUser, true
	}
	return 0, false
}

// begin adds the ephemeral container, and gives its name.
func (l *look) begin(ctx context.Context, c *connected, pod *core.Pod, target *core.Container) (string, error) {
	uid, known := l.user, l.user >= 0
	if !known {
		if uid, known = userOf(pod, target); !known {
			// As another user it reads threads and not counters: which user the image has is not in the API.
			const nobody = 65532
			uid = nobody
			fmt.Fprintf(l.ErrOut, "the user of container %s is its image's, and not in its spec: without --user UID its counters may not be "+
				"readable\n", target.Name)
		}
	}
	args := []string{"look", strconv.Itoa(l.pid), "--for", l.length.String()}
	if l.output == "json" {
		args = append(args, "--json")
	}
	name := lookPrefix + rand.String(5)
	with := pod.DeepCopy()
	with.Spec.EphemeralContainers = append(with.Spec.EphemeralContainers, core.EphemeralContainer{
		TargetContainerName: target.Name,
		EphemeralContainerCommon: core.EphemeralContainerCommon{
			Name: name, Image: l.image, Args: args, TerminationMessagePolicy: core.TerminationMessageReadFile,
			SecurityContext: &core.SecurityContext{
				RunAsUser: &uid, RunAsNonRoot: new(uid != 0), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities:   &core.Capabilities{Drop: []core.Capability{"ALL"}},
				SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault},
			},
		},
	})
	_, err := c.client.CoreV1().Pods(pod.Namespace).UpdateEphemeralContainers(ctx, pod.Name, with, meta.UpdateOptions{})
	if apierrors.IsForbidden(err) {
		return "", fmt.Errorf("%w; you need 'update' on pods/ephemeralcontainers in namespace %s", err, pod.Namespace)
	}
	return name, err
}

// stateOf is what the kubelet says of an ephemeral container; nil: nothing yet.
func (l *look) stateOf(ctx context.Context, c *connected, pod *core.Pod, name string) (*core.ContainerState, error) {
	now, err := c.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, meta.GetOptions{})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(now.Status.EphemeralContainerStatuses, func(s core.ContainerStatus) bool { return s.Name == name })
	if i < 0 {
		return nil, nil
	}
	return &now.Status.EphemeralContainerStatuses[i].State, nil
}

// stuck are reasons for which a container does not start by waiting.
var stuck = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError",
	"CreateContainerError", "RunContainerError"}

// started waits until the container runs, or has ended.
func (l *look) started(ctx context.Context, c *connected, pod *core.Pod, name string) error {
	last := "the kubelet has said nothing of it"
	for waited := time.Duration(0); waited < lookStarts; waited += l.poll {
		state, err := l.stateOf(ctx, c, pod, name)
		if err != nil {
			return err
		}
		switch {
		case state == nil:
		case state.Running != nil, state.Terminated != nil:
			return nil
		case state.Waiting != nil:
			if last = reasonWith(state.Waiting.Reason, state.Waiting.Message); slices.Contains(stuck, state.Waiting.Reason) {
				return fmt.Errorf("ephemeral container %s does not start: %s", name, last)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(l.poll):
		}
	}
	return fmt.Errorf("ephemeral container %s has not started in %s: %s", name, lookStarts, last)
}

// copy writes what the container says, line by line: it runs in a stranger's pod.
func (l *look) copy(ctx context.Context, c *connected, pod *core.Pod, name string) error {
	in, err := c.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &core.PodLogOptions{Container: name, Follow: true}).Stream(ctx)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; you need 'get' on pods/log in namespace %s", err, pod.Namespace)
	}
	if err != nil {
		return err
	}
	defer in.Close()
	return copyLines(l.Out, l.ErrOut, in, l.output == "json")
}

// copyLines writes the lines of a log, in which what the program said to errOut is mixed with its report.
func copyLines(out, errOut io.Writer, in io.Reader, json bool) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, mostLine)
	inside := false // a document, from the line { to the line }
	for lines.Scan() {
		inside = inside || lines.Text() == "{"
		to := out
		if progress.IsMinutely(lines.Text()) || json && (!inside || strings.HasPrefix(lines.Text(), "unthrottle: ")) {
			to = errOut
		}
		inside = inside && lines.Text() != "}"
		if _, err := fmt.Fprintln(to, text.Sanitize(lines.Text(), mostLine)); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Exit codes of look that have an answer: nothing above the bound, or something.
var answered = []int32{0, 1}

// ended says how it ended, where it has no answer.
func (l *look) ended(ctx context.Context, c *connected, pod *core.Pod, name string) error {
	for range 10 { // the log ends before the kubelet tells
		state, err := l.stateOf(ctx, c, pod, name)
		if err != nil {
			return err
		}
		if state != nil && state.Terminated != nil {
			if t := state.Terminated; !slices.Contains(answered, t.ExitCode) {
				return fmt.Errorf("ephemeral container %s ended with exit code %d: %s", name, t.ExitCode, reasonWith(t.Reason, t.Message))
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(l.poll):
		}
	}
	return errors.New("ephemeral container " + name + " has not ended, though its log has: 'kubectl describe pod' says more")
}
