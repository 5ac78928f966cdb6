package top

import (
	"context"
	"errors"
	"io"

	tea "charm.land/bubbletea/v2"
)

// Run shows the model on a terminal until the user leaves, ctx ends or watch fails. watch is run beside it and gives
// frames through show, which may be called from any goroutine; it ends when its context does. follows is the command to
// type next; "": none.
func Run(ctx context.Context, m Model, in io.Reader, out io.Writer,
	watch func(ctx context.Context, show func(Frame)) error) (follows string, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if err := watch(ctx, func(f Frame) { p.Send(f) }); err != nil && ctx.Err() == nil {
			cancel(err)
		}
	}()
	last, err := p.Run()
	failed := context.Cause(ctx)
	cancel(nil)
	<-watched
	switch {
	case failed != nil && !errors.Is(failed, context.Canceled):
		return "", failed
	case errors.Is(err, tea.ErrProgramKilled) && failed != nil, errors.Is(err, tea.ErrInterrupted):
		return "", context.Canceled
	}
	if last, ok := last.(Model); ok {
		follows = last.follows()
	}
	return follows, err
}
