package nginx

import (
	"slices"
	"strings"
)

// ofConnection are headers that are not of the request, but of one connection. To change them
// would break the connection, or let a client send what looks like two requests.
var ofConnection = []string{
	"connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}

// LoopHeader counts how often a request has come through this gateway (RFC 8586). No object
// changes it. A request that has come mostRounds times already is refused.
const (
	LoopHeader = "CDN-Loop"
	loopMark   = "kates-gateway"
	mostRounds = 3
)

// changeable reports whether a header may be changed.
func changeable(name string) bool {
	return headerName.MatchString(name) && !strings.EqualFold(name, LoopHeader) && !slices.Contains(ofConnection, strings.ToLower(name))
}

// field is what becomes of a header.
type field struct {
	name  string
	was   string   // what it has without changes, quoted for nginx; empty: nothing
	added []string // values
}

// fields are headers in the order of their first change.
type fields []*field

func (f *fields) of(name, was string) *field {
	for _, one := range *f {
		if strings.EqualFold(one.name, name) {
			return one
		}
	}
	one := &field{name: name, was: was}
	*f = append(*f, one)
	return one
}

// change makes the changes of a rule or a backend. was returns what a header has without them.
func (f *fields) change(c HeaderChanges, was func(name string) string) {
	for _, name := range c.Remove {
		if changeable(name) {
			one := f.of(name, "")
			one.was, one.added = "", nil
		}
	}
	for _, h := range c.Set {
		if changeable(h.Name) {
			one := f.of(h.Name, "")
			one.was, one.added = "", []string{h.Value}
		}
	}
	for _, h := range c.Add {
		if changeable(h.Name) {
			one := f.of(h.Name, was(h.Name))
			one.added = append(one.added, h.Value)
		}
	}
}

// sent returns the client's own header.
func sent(name string) string {
	if !plainName.MatchString(name) {
		return "" // nginx drops it, or has no variable for it
	}
	return `"$http_` + strings.ToLower(strings.ReplaceAll(name, "-", "_")) + `"`
}

// proxied are the headers that a request to an endpoint has beside the client's own.
func (r *renderer) proxied() fields {
	all := fields{
		{name: "Host", was: "$host$asked_port"}, {name: "Connection", was: "$connection_upgrade"}, {name: "Upgrade", was: "$upgrade"},
		{name: LoopHeader, was: "$passed"},
	}
	if r.config.Settings.ProxyHeaders {
		all = append(all,
			&field{name: "X-Forwarded-For", was: "$proxy_add_x_forwarded_for"}, &field{name: "X-Forwarded-Proto", was: "$scheme"},
			&field{name: "X-Forwarded-Host", was: "$host$asked_port"}, &field{name: "X-Forwarded-Port", was: "$server_port"},
			&field{name: "X-Real-IP", was: "$remote_addr"})
	}
	return all
}

// requestHeaders writes the headers of requests to endpoints. A location that has some has none of
// the outer ones, so these are all.
func (r *renderer) requestHeaders(w *writer, all fields) {
	for _, f := range all {
		values := strings.Join(f.added, ",")
		switch {
		case len(f.added) == 0 && f.was == "":
			w.line(`proxy_set_header %s "";`, fixed(f.name))
		case len(f.added) == 0:
			w.line(`proxy_set_header %s %s;`, fixed(f.name), f.was)
		case f.was == "":
			w.line(`proxy_set_header %s %s;`, fixed(f.name), expanded(values))
		default:
			w.line(`proxy_set_header %s $%s;`, fixed(f.name), r.appended(w, f.was, values))
		}
	}
}

// appended returns a variable with what a header has, and more values, with commas and no spaces
// as the Gateway API has them.
func (r *renderer) appended(w *writer, was, values string) string {
	was = strings.Trim(was, `"`)
	return r.variable("added", w.source, `map "`+was+`"`, `"" `+expanded(values)+`;`, `default "`+was+","+strings.TrimPrefix(expanded(values), `"`)+`;`)
}

// responseHeaders writes the headers of answers.
func (r *renderer) responseHeaders(w *writer, all fields) {
	for _, f := range all {
		if f.was == "" {
			w.line(`proxy_hide_header %s;`, fixed(f.name))
		}
		for _, value := range f.added {
			w.line(`add_header %s %s always;`, fixed(f.name), expanded(value))
		}
	}
}
