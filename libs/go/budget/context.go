package budget

import "context"

// inContext is the key of permits.
type inContext struct{}

// permits are those of a context, the innermost first.
type permits struct {
	permit *Permit
	around *permits
}

func permitsOf(ctx context.Context) *permits {
	all, _ := ctx.Value(inContext{}).(*permits)
	return all
}

// innermost is the permit of the innermost task that goes on; nil: there is none.
func (all *permits) innermost() *Permit {
	for ; all != nil; all = all.around {
		if !all.permit.over() {
			return all.permit
		}
	}
	return nil
}

// covering is the permit by which a task of a class runs; nil: it needs one of its own. A task of App or Background may do
// anything with its permit. One of IO may not: App and Background have fewer permits, and are held back.
func (all *permits) covering(b *Budget, class Class) *Permit {
	for ; all != nil; all = all.around {
		p := all.permit
		if p.b == b && (p.class != IO || class == IO) && !p.over() {
			return p
		}
	}
	return nil
}

// WithPermit returns a context with the permit of the task, for [Wait] and [Checkpoint] below. Handlers within package shed and
// grpcshed have one. Until the permit is released, tasks with this context run by it, and not one after the other: those of
// [Budget.Do], [Budget.Acquire] and [Budget.AcquireWithin], but for App and Background within IO.
func WithPermit(ctx context.Context, p *Permit) context.Context {
	if p.around != nil {
		p = p.around
	}
	return context.WithValue(ctx, inContext{}, &permits{p, permitsOf(ctx)})
}

// Wait is [Permit.Wait] for the permit of a context. Without one it only runs what is waited for.
func Wait(ctx context.Context, wait func()) error {
	if p := permitsOf(ctx).innermost(); p != nil {
		return p.Wait(ctx, wait)
	}
	wait()
	return ctx.Err()
}

// Checkpoint is [Permit.Checkpoint] for the permit of a context. Without one it holds nothing back.
func Checkpoint(ctx context.Context) error {
	if p := permitsOf(ctx).innermost(); p != nil {
		return p.Checkpoint(ctx)
	}
	return ctx.Err()
}
