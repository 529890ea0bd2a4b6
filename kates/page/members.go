package page

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/lockorder"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

// origin is what the page knows of a client.
type origin interface {
	report() *inspect.Report
	unhealthy() error                                           // why the client is not, as its liveness probe says
	objects(w *inspect.Watch, query string) []inspect.ObjectKey // in order
	object(w *inspect.Watch, query string, key inspect.ObjectKey) (inspect.Object, bool)
	invalid(w *inspect.Watch, query string, limit int) []inspect.InvalidObject
}

type clientOrigin struct{ client *kates.Client }

func (o clientOrigin) report() *inspect.Report { return inspect.Of(o.client) }

func (o clientOrigin) unhealthy() error { return o.client.HealthCheck(nil) }

func (o clientOrigin) objects(w *inspect.Watch, query string) []inspect.ObjectKey {
	return w.Objects(query)
}

func (o clientOrigin) object(w *inspect.Watch, query string, key inspect.ObjectKey) (inspect.Object, bool) {
	return w.Object(query, key)
}

func (o clientOrigin) invalid(w *inspect.Watch, query string, limit int) []inspect.InvalidObject {
	return w.Invalid(query, limit)
}

// member is a client with its name on the page.
type member struct {
	name string
	origin
	watcher *watcher
}

// ObserveClient implements [kates.ClientObserver]: from now on the page is about the client, too,
// until that is closed.
func (p *Page) ObserveClient(c *kates.Client) (o kates.Observer, closed func()) {
	return p.join(c.ClusterName(), clientOrigin{c})
}

// nameless is the name of a client of no cluster.
const nameless = "client"

// join adds a client, under a name that no other has.
func (p *Page) join(name string, o origin) (*watcher, func()) {
	if name == "" {
		name = nameless
	}
	m := &member{name: name, origin: o}
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := 2; slices.ContainsFunc(p.joined, func(of *member) bool { return of.name == m.name }); n++ {
		m.name = fmt.Sprintf("%s (%d)", name, n)
	}
	m.watcher = &watcher{page: p, client: m.name}
	p.joined = append(p.joined, m)
	return m.watcher, func() { p.leave(m) }
}

func (p *Page) leave(m *member) {
	m.watcher.ended.Store(true)
	p.mu.Lock()
	p.joined = slices.DeleteFunc(p.joined, func(of *member) bool { return of == m })
	p.mu.Unlock()
	p.requests.forget(m.name)
}

// members returns the clients of this moment.
func (p *Page) members() []*member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.joined)
}

// Request, Call and Updated make a page an observer. They are not called: each client has an
// observer of its own.
func (p *Page) Request(ctx context.Context, _ kates.RequestInfo) (context.Context, func(kates.RequestResult)) {
	return ctx, nil
}

// Call see Request.
func (p *Page) Call(ctx context.Context, _ kates.CallInfo) (context.Context, func(kates.CallResult)) {
	return ctx, nil
}

// Updated see Request.
func (p *Page) Updated(kates.UpdateInfo) {}

// reportOf returns the report of a client, without texts that nobody may see.
func (p *Page) reportOf(m *member) *inspect.Report {
	r := m.report()
	for _, w := range r.Watches {
		w.Incomplete = p.text(w.Incomplete)
		for _, q := range w.Queries {
			q.Error = p.textOf(q.Error, q.State)
			if why, plain := strings.CutPrefix(q.Start, "list: "); plain {
				q.Start = "list: " + p.text(why)
			}
		}
	}
	for _, s := range r.Streams {
		s.Error = p.textOf(s.Error, s.State)
	}
	for _, l := range r.Loops {
		for i := range l.Failing {
			l.Failing[i].Error = p.text(l.Failing[i].Error)
		}
	}
	for i := range r.Leaders {
		r.Leaders[i].Error = p.text(r.Leaders[i].Error)
	}
	for i := range r.Shards {
		r.Shards[i].Error = p.text(r.Shards[i].Error)
	}
	return r
}

const (
	textLeftOut  = "(left out: it might quote what page.Redact hides; page.RedactText can show it)"
	textPanicked = "(left out: the function of page.RedactText panicked)"
)

// text is a text of an error as it may be shown.
func (p *Page) text(of string) string {
	switch {
	case of == "":
		return ""
	case p.texts != nil:
		return p.changed(of)
	case p.redact != nil:
		return textLeftOut
	}
	return of
}

func (p *Page) changed(text string) (to string) {
	lockorder.CallOut("the function of RedactText")
	err := guard.Call(func() error {
		to = p.texts(text)
		return nil
	})
	if err != nil {
		return textPanicked
	}
	return to
}

// textOf is text for a query or a stream. That something is refused, or missing, is no object's.
func (p *Page) textOf(of string, s kates.State) string {
	if p.texts == nil && (s == kates.StateForbidden || s == kates.StateMissing) {
		return of
	}
	return p.text(of)
}
