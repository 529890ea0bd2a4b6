package page

import (
	"fmt"
	"time"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/inspect"
)

// silent says for how long the watch of a stream has brought nothing, if that is too long, and how
// often it was opened again for that in the last minutes.
func (p *Page) silent(s *inspect.Stream, at time.Time) (age time.Duration, again int) {
	again = int(p.history.grown(streamSeries(s.ID, "idle"), fineSpan, at))
	if age = at.Sub(s.Heard); s.State != kates.StateSynced || s.Heard.IsZero() || age < quietWatch {
		age = 0
	}
	return age, again
}

// isSilent reports whether the page warns of a silent watch.
func (p *Page) isSilent(s *inspect.Stream, at time.Time) bool {
	age, again := p.silent(s, at)
	return age > 0 || again > 0
}

// silence says that the server does not say anything.
func (f *finder) silence(c clientState, s *inspect.Stream, p Problem) {
	age, again := f.page.silent(s, f.at)
	p.Cause = "half-open"
	switch {
	case age > 0:
		p.Since = s.Heard
		p.What = fmt.Sprintf("The watch of %s is open, but nothing has come for %s, not even a bookmark: the connection may be half-open. "+
			"If so, snapshots lack what has changed since.", nameOf(s), duration(age))
	case again > 0:
		p.What = fmt.Sprintf("The watch of %s was opened again %s in the last minutes, since nothing had come, not even a bookmark: "+
			"the connection may be half-open. Then its changes come late.", nameOf(s), times(again))
	default:
		return
	}
	if s.Events == 0 && s.Bookmarks == 0 { // nothing has ever come
		p.Since = s.Since
	}
	p.Do = "The client opens a new watch after Tuning.IdleTimeout (130 s). If this comes again, look for a proxy, a NAT or a " +
		"load balancer that drops idle connections. "
	if othersHear(c, s) {
		p.Do += "Other watches of this client get bookmarks, so the server sends them, and it is this one that gets none."
	} else {
		p.Do += "A server that sends no bookmarks looks like this, too."
	}
	f.add(p)
}

// othersHear reports whether another watch of a client gets bookmarks.
func othersHear(c clientState, s *inspect.Stream) bool {
	for _, o := range c.Report.Streams {
		if o.ID != s.ID && o.State == kates.StateSynced && o.Bookmarks > 0 && o.Heard.After(s.Heard) {
			return true
		}
	}
	return false
}

// oneInvalid is one of the objects that a query leaves out, with the reason, and how many more
// there are.
func (f *finder) oneInvalid(c clientState, w *inspect.Watch, q *inspect.Query) string {
	of := c.member.invalid(w, q.Name, 1)
	if len(of) == 0 {
		return ""
	}
	text := nameIn(of[0].Namespace, of[0].Name) + ": " + f.page.invalidText(place{c.member, c.Report, w, q}, of[0])
	if more := q.Invalid - 1; more > 0 {
		text += fmt.Sprintf("\nand %d more", more)
	}
	return text
}

// emptyStreams are the streams that are not open, and whose queries all count as empty.
func emptyStreams(r *inspect.Report) map[int64]bool {
	all := map[int64]bool{}
	for _, absent := range []bool{true, false} { // one query that does not is enough
		for _, w := range r.Watches {
			for _, q := range w.Queries {
				for _, id := range q.Streams {
					if q.Absent == absent {
						all[id] = absent
					}
				}
			}
		}
	}
	return all
}
