package page

import (
	"slices"
	"time"

	"github.com/kates-go/kates/derive"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates/inspect"
)

// clientState is a client at the moment of a request.
type clientState struct {
	member *member
	Report *inspect.Report

	unhealthy string // why
}

// state is all that a request's answer is made of.
type state struct {
	at       time.Time
	clients  []clientState // all
	asked    []clientState // those that the request asks for
	fleets   []fleet.Status
	graphs   []derive.Stats
	requests []RequestRow
	recent   []Snapshot
	problems []Problem
}

// stateNow asks all clients. client is the name of the one that is asked for, "" for all.
func (p *Page) stateNow(client string) *state {
	s := &state{at: time.Now()}
	for _, m := range p.members() {
		c := clientState{member: m, Report: p.reportOf(m)}
		if err := m.unhealthy(); err != nil {
			c.unhealthy = p.text(err.Error())
		}
		s.clients = append(s.clients, c)
		if client == "" || client == m.name {
			s.asked = append(s.asked, c)
		}
	}
	p.mu.Lock()
	fleets := slices.Clone(p.fleets)
	p.mu.Unlock()
	for _, f := range fleets {
		of := f.Status()
		p.scrubFleet(&of)
		s.fleets = append(s.fleets, of)
	}
	for _, g := range p.graphsNow() {
		s.graphs = append(s.graphs, g.Stats())
	}
	s.requests = p.requests.rows(s.at)
	s.recent = p.recent.last()
	s.problems = p.problems(s)
	return s
}

func (p *Page) scrubFleet(s *fleet.Status) {
	for i := range s.Sources {
		s.Sources[i].Error = p.text(s.Sources[i].Error)
	}
	for i := range s.Clusters {
		c := &s.Clusters[i]
		c.Error, c.Rotation = p.text(c.Error), p.text(c.Rotation)
	}
}
