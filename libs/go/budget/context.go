package budget

import "context"

// inContext is the key of a permit.
type inContext struct{}

// WithPermit returns a context with the permit of the task, for [Wait] and [Checkpoint] below. Handlers within package shed and
// grpcshed have one.
func WithPermit(ctx context.Context, p *Permit) context.Context {
	return context.WithValue(ctx, inContext{}, p)
}

// Wait is [Permit.Wait] for the permit of a context. Without one it only runs what is waited for.
func Wait(ctx context.Context, wait func()) error {
	if p, ok := ctx.Value(inContext{}).(*Permit); ok {
		return p.Wait(ctx, wait)
	}
	wait()
	return ctx.Err()
}

// Checkpoint is [Permit.Checkpoint] for the permit of a context. Without one it holds nothing back.
func Checkpoint(ctx context.Context) error {
	if p, ok := ctx.Value(inContext{}).(*Permit); ok {
		return p.Checkpoint(ctx)
	}
	return ctx.Err()
}
