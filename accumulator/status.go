package accumulator

import "time"

// QueryStatus says how one query stands.
type QueryStatus struct {
	Name      string    `json:"name"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Optional  bool      `json:"optional,omitempty"`
	State     State     `json:"state"`
	Since     time.Time `json:"since"`
	// Form of the objects that the watch holds: whole ones if empty; "metadata", or "metadata of
	// whole objects" where those come over the wire and are shortened here.
	Form string `json:"form,omitempty"`
	// Error is the last one, empty while all is well.
	Error string `json:"error,omitempty"`
	// Objects that the watch holds.
	Objects int `json:"objects"`
	// Invalid objects are left out of the snapshot.
	Invalid int `json:"invalid"`
	// Version up to which the watch has delivered everything.
	Version string `json:"version,omitempty"`
	// Pending own writes that the watch has not shown yet.
	Pending int `json:"pending"`
	// Unsettled own writes are shown only when the watch brings them: the server could
	// not be asked what they mean for this query.
	Unsettled int `json:"unsettled,omitempty"`
	// Restarts of the watch that took a new list.
	Restarts int `json:"restarts"`
}

// Status says how each query stands, in the order of the queries.
func (a *Accumulator) Status() []QueryStatus {
	all := make([]QueryStatus, len(a.fields))
	for i := range a.fields {
		all[i] = a.statusOf(i)
	}
	return all
}

func (a *Accumulator) statusOf(i int) QueryStatus {
	f := a.fields[i]
	a.mu.Lock()
	sub := f.sub
	st := QueryStatus{
		Name: f.query.Name, Kind: f.query.Kind, Namespace: f.query.Namespace,
		Optional: f.query.Optional, State: Waiting, Since: f.since,
	}
	if f.absent {
		st.State = Missing
	}
	if f.err != nil {
		st.Error = f.err.Error()
	}
	a.mu.Unlock()
	a.reader.mu.Lock()
	if a.reader.tables != nil {
		st.Invalid = len(a.reader.tables[i].Invalid())
	}
	a.reader.mu.Unlock()
	if sub == nil {
		return st
	}
	s := sub.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	st.State, st.Since = s.health.state, s.health.since
	if st.State == "" {
		st.State = Listing
	}
	if s.health.err != nil {
		st.Error = s.health.err.Error()
	}
	st.Form = s.formNow()
	st.Objects, st.Version = len(s.store), s.view.Position()
	st.Pending, st.Restarts, st.Unsettled = s.view.Pending(), s.health.restarts, s.unsettledNow()
	return st
}
