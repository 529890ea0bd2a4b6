package page

import (
	"fmt"
	"time"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates/inspect"
)

// maxOfLoop is how many calls of a loop are problems of their own. The others are counted.
const maxOfLoop = 3

// loop says which calls fail, and which hang.
func (f *finder) loop(c clientState, l *inspect.Loop) {
	to := link("loops", "client", c.member.name) + "#" + loopID(l)
	for i, failing := range l.Failing {
		if i == maxOfLoop {
			break
		}
		p := Problem{
			Cause: "failing-call", Effect: Wrong, Client: c.member.name, Since: failing.Since, Detail: failing.Error, Link: to, ID: failing.ID,
			What: fmt.Sprintf("%s fails%s: %s in a row, last %s.", l.Name, forKey(failing.Key),
				count(failing.Attempt, "time", "times"), past(f.at, failing.At)),
			Do: fmt.Sprintf("Read the error. Search the log for %s. The program tries again by itself%s; the pauses get longer.",
				failing.ID, f.again(c, l, failing.Key)),
		}
		if more := l.FailingAll - maxOfLoop; i == maxOfLoop-1 && more > 0 {
			p.What += " " + count(more, "other key does", "other keys do") + ", too."
		}
		f.add(p)
	}
	hung := 0
	for _, call := range l.Running {
		if f.age(call.Since) < hungCall {
			continue
		}
		if hung++; hung > maxOfLoop {
			continue
		}
		f.add(Problem{
			Cause: "hung-call", Effect: Late, Client: c.member.name, Since: call.Since, Link: to,
			What: fmt.Sprintf("A call of %s%s runs for %s, and has not returned.", l.Name, forKey(call.Key), duration(f.age(call.Since))),
			Do: "It is slow, or hangs: a goroutine dump (SIGQUIT, /debug/pprof/goroutine) shows where. Give its requests " +
				"the context of the call, with a time-out.",
		})
	}
}

// again says in how long a key is tried again, if that is known.
func (f *finder) again(c clientState, l *inspect.Loop, key string) string {
	if until := restsUntil(c.Report, l, key); until.After(f.at) {
		return " in " + duration(until.Sub(f.at))
	}
	return ""
}

// restsUntil is when a key of a loop is tried again; zero if that is not known.
func restsUntil(r *inspect.Report, l *inspect.Loop, key string) (until time.Time) {
	for _, w := range r.Watches {
		if w.Name != l.Name || w.Keys == nil {
			continue
		}
		for _, k := range w.Keys.Some {
			if k.Key == key {
				until = k.Until
			}
		}
	}
	return until
}

func forKey(key string) string {
	if key == "" {
		return ""
	}
	return " for key " + quoted(key)
}

// leases says what is wrong with elections and shards.
func (f *finder) leases(c clientState) {
	const do = "Grant get, create and update on leases.coordination.k8s.io in its namespace, and see that the namespace exists and " +
		"the API server answers."
	for _, l := range c.Report.Leaders {
		if l.Error != "" {
			f.add(Problem{
				Cause: "lease", Effect: Wrong, Client: c.member.name, Since: l.Since, Detail: l.Error, Do: do, Link: link("leaders"),
				What: fmt.Sprintf("The Lease %s cannot be read or written: this replica cannot lead.", l.Lease),
			})
		}
	}
	for _, s := range c.Report.Shards {
		if s.Error != "" {
			f.add(Problem{
				Cause: "shard", Effect: Wrong, Client: c.member.name, Since: s.Since, Detail: s.Error, Do: do, Link: link("leaders"),
				What: fmt.Sprintf("This replica is no member of the shards %s, or cannot renew that.", s.Group),
			})
		}
	}
}

// fleet says which clusters and sources do not answer.
func (f *finder) fleet(of fleet.Status) {
	for _, s := range of.Sources {
		if s.Error != "" {
			f.add(Problem{
				Cause: "source", Effect: Wrong, Detail: s.Error, Link: link(""),
				What: fmt.Sprintf("The source %s of clusters does not run, or names one that cannot be used. Its clusters stay.", s.Name),
				Do:   "Look at the error. The program tries again by itself.",
			})
		}
	}
	for _, c := range of.Clusters {
		p := Problem{Effect: Wrong, Client: c.Name, Since: c.Since, Link: link("")}
		switch {
		case c.Phase == "" && c.Rotation != "":
			p.Cause, p.Detail = "no-configuration", c.Rotation
			p.What = fmt.Sprintf("Cluster %s has no configuration that can be used.", quoted(c.Name))
			p.Do = "Correct its kubeconfig, where its source has it."
			f.add(p)
			continue
		case c.Phase == "", c.Phase == fleet.Connecting && f.age(c.Since) < slowFirst: // it has just come
		case c.Phase != fleet.Up:
			p.Cause, p.Detail = "cluster-down", c.Error
			p.What = fmt.Sprintf("Cluster %s is %s. What was last known of it stays.", quoted(c.Name), c.Phase)
			p.Do = "Look at its API server, and at the network and the credentials on the way to it."
			f.add(p)
		}
		if c.Rotation != "" {
			p.Cause, p.Detail, p.Since = "rotation", c.Rotation, time.Time{}
			p.What = fmt.Sprintf("The newest configuration of cluster %s is not in use, since it does not work.", quoted(c.Name))
			p.Do = "Correct it before the one in use expires."
			f.add(p)
		}
	}
}

// requests says which requests fail often. Lists and watches are among the queries.
func (f *finder) requests(rows []RequestRow) {
	for _, r := range rows {
		if r.FailedLately < oftenFailing && !(r.FailedLately > 0 && serious(r.LastCode)) || r.Verb == "list" || r.Verb == "watch" {
			continue
		}
		effect := Wrong
		if r.LastCode == 409 || r.LastCode == 429 {
			effect = Expensive
		}
		f.add(Problem{
			Cause: "failing-requests", Effect: effect, Client: r.Client, Since: r.failedFirst,
			What: fmt.Sprintf("%s of %s failed in the last minutes, the last one %s with %s.",
				count(int(r.FailedLately), "request", "requests"), target(r.Verb, r.Resource), past(f.at, r.LastFailed), codeText(r.LastCode)),
			Do:   whatToDo(r.LastCode),
			Link: link("requests", "client", r.Client),
		})
	}
}

// serious are answers of which one is enough.
func serious(code int) bool { return code == 0 || code == 401 || code == 403 }

func target(verb, resource string) string {
	if resource == "" {
		return "the verb " + verb
	}
	return verb + " " + resource
}

func whatToDo(code int) string {
	switch {
	case code == 0:
		return "There was no answer: look at the network and the API server."
	case code == 401:
		return "The credentials are refused: has the token expired?"
	case code == 403:
		return "Grant the verb to the program's service account, or see which admission webhook refuses."
	case code == 409:
		return "Somebody else writes the same objects. Use Modify or Apply, and write only what differs."
	case code == 422:
		return "The object that is written is not valid: the error of the call says why."
	case code == 429:
		return "The server sheds load: write less, or give the client its own flow schema."
	case code >= 500:
		return "The API server, or a webhook of it, fails: look at its log."
	}
	return "Look at the error of the call."
}

// updates says if snapshots are slow to make.
func (f *finder) updates(recent []Snapshot) {
	said := map[int64]bool{}
	for _, s := range recent {
		took := time.Duration(s.Took * float64(time.Second))
		if took < slowUpdate || said[s.ID] || s.First || f.age(s.At) > lately {
			continue
		}
		said[s.ID] = true
		f.add(Problem{
			Cause: "slow-update", Effect: Expensive, Client: s.Client, Since: s.At, Link: link("snapshots", "client", s.Client),
			What: fmt.Sprintf("An Update of %s took %s, for %s.", s.Watch, duration(took), count(s.Changes, "change", "changes")),
			Do:   "Look at predicates, transforms and key functions: they run once per change. Or the program has too little CPU.",
		})
	}
}
