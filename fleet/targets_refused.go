package fleet

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/kates-go/kates/internal/engine/plan"
	"github.com/kates-go/kates/internal/loops/attempts"
	"github.com/kates-go/kates/kates"
)

// forgiving are the times after which the server is asked again for what it has refused.
var forgiving = attempts.Backoff{First: time.Minute, Most: 5 * time.Minute}

// refusals say when a follower asks what the server refuses, and when it forgets that.
type refusals struct {
	asked    int       // how often, since all was well
	notYet   time.Time // it is not asked again before
	forgiven int       // how often
	forgive  time.Time // when to forget; zero: nothing is refused
}

// inspect looks at the state of the watch. It returns how long to wait until the next look, and
// whether there is something to start now.
func (a *follower) inspect() (pause time.Duration, again bool) {
	w := a.w
	w.mu.Lock()
	f := w.following
	w.mu.Unlock()
	if f == nil {
		return idlePoll, false
	}
	s := f.state()
	if s.State == kates.StateForbidden || s.State == kates.StateMissing { // 403 in a namespace that is gone
		a.refused(s.State == kates.StateForbidden)
	}
	a.forgive()
	w.mu.Lock()
	waiting := w.schedule.Waiting()
	if waiting && time.Since(a.began) >= overdueAfter {
		w.schedule.Overdue()
	}
	_, next := w.schedule.Next()
	w.mu.Unlock()
	if again = next && time.Until(a.notYet) <= 0; again {
		return 0, true
	}
	switch s.State {
	case kates.StateSynced:
		if a.failures == 0 {
			w.report(nil, 0)
		}
		a.refusals.asked = 0
	case kates.StateListing, kates.StateWaiting:
	default:
		w.report(errors.New(cmp.Or(s.Error, string(s.State))), a.failures)
	}
	pause = idlePoll
	if waiting {
		pause, a.poll = a.poll, min(2*a.poll, mostPoll)
	}
	return sooner(pause, max(0, time.Until(a.notYet))), false
}

// refused finds out which parts of the newest plan the server refuses. certain: it refuses one, at
// least.
func (a *follower) refused(certain bool) {
	w := a.w
	w.mu.Lock()
	p, waiting := w.schedule.Latest(), w.schedule.Waiting()
	w.mu.Unlock()
	if time.Until(a.refusals.notYet) > 0 {
		return
	}
	a.refusals.asked++
	a.refusals.notYet = time.Now().Add(retries.After(a.refusals.asked))
	ctx, cancel := context.WithTimeout(a.ctx, a.w.startTimeout())
	defer cancel()
	for _, part := range p.Parts {
		// If the only part waits for its first list, it is the one: there is nothing to ask.
		if !(certain && waiting && len(p.Parts) == 1) && !a.isRefused(ctx, part) {
			continue
		}
		w.mu.Lock()
		news := w.schedule.Refuse(part)
		w.mu.Unlock()
		if news {
			a.refusals.notYet = time.Time{}
			a.refusals.forgive = time.Now().Add(forgiving.After(a.refusals.forgiven + 1))
		}
	}
}

// isRefused asks the server for a part, whose metadata is enough.
func (a *follower) isRefused(ctx context.Context, part plan.Part) bool {
	var all []*kates.PartialObjectMetadata
	q := queryOf(a.w.key.kind, plan.Plan{Parts: []plan.Part{part}})
	return kates.IsForbidden(a.client.List(ctx, q, &all))
}

// forgive forgets what the server refuses, after a time.
func (a *follower) forgive() {
	if a.refusals.forgive.IsZero() || time.Until(a.refusals.forgive) > 0 {
		return
	}
	a.refusals.forgive = time.Time{}
	a.refusals.forgiven++
	a.refusals.notYet = time.Time{}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.schedule.Forgive()
}

// queryOf returns the query of a plan.
func queryOf(kind string, p plan.Plan) kates.Query {
	q := kates.Query{Name: "Objects", Kind: kind, MetadataOnly: !p.Whole}
	if len(p.Parts) == 1 {
		part := p.Parts[0]
		q.Namespace, q.LabelSelector = part.Namespace, part.Labels
		if part.Name != "" {
			q.FieldSelector = fields.OneTermEqualSelector("metadata.name", part.Name).String()
		}
		return q
	}
	if p.Level == plan.Namespaces && onlyNamespaces(p.Parts) {
		for _, part := range p.Parts {
			q.Namespaces = append(q.Namespaces, part.Namespace)
		}
		return q
	}
	for _, part := range p.Parts {
		s := kates.Selection{LabelSelector: part.Labels}
		var required []fields.Selector
		if part.Namespace != "" {
			required = append(required, fields.OneTermEqualSelector("metadata.namespace", part.Namespace))
		}
		if part.Name != "" {
			required = append(required, fields.OneTermEqualSelector("metadata.name", part.Name))
		}
		if required != nil {
			s.FieldSelector = fields.AndSelectors(required...).String()
		}
		q.AnyOf = append(q.AnyOf, s)
	}
	return q
}

// onlyNamespaces reports whether each part is all of a namespace.
func onlyNamespaces(parts []plan.Part) bool {
	for _, p := range parts {
		if p.Namespace == "" || p.Name != "" || p.Labels != "" {
			return false
		}
	}
	return true
}
