package nginx

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// listeners splits servers by address and port.
func listeners(servers []Server) [][]Server {
	var all [][]Server
	at := map[string]int{}
	for _, s := range servers {
		if s.Host != "" && !isHost(s.Host) || s.Listener != "" && s.Listener != "*" && !isHost(s.Listener) || s.Port < 1 || s.Port > 65535 {
			continue
		}
		key := fmt.Sprint(s.Address, " ", s.Port)
		i, ok := at[key]
		if !ok {
			i = len(all)
			at[key] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], s)
	}
	return all
}

// listener writes the servers of one address and port. One of them takes the requests for hosts
// that have no server.
func (r *renderer) listener(w *writer, servers []Server) {
	var taken bool
	connection := r.connection(servers)
	for _, s := range servers {
		taken = taken || s.Host == ""
		r.server(w, s, connection)
	}
	if taken {
		return
	}
	w.line("# Other hosts.")
	w.block("server", func() {
		other := servers[0]
		other.Host, other.Certificate = "", ""
		r.listen(w, other)
		if !other.TLS {
			w.line("return 404;")
		}
	})
}

// connection returns a variable with the Listener that a connection was made for.
func (r *renderer) connection(servers []Server) string {
	if !slices.ContainsFunc(servers, func(s Server) bool { return s.TLS && s.Listener != "" }) {
		return ""
	}
	name := fmt.Sprintf("connection%d", len(r.names)+1)
	r.names[name] = name
	r.maps.depth = 1
	r.maps.block("map $ssl_server_name $"+name, func() {
		r.maps.line("hostnames;")
		r.maps.line(`default "*";`)
		for _, s := range servers {
			if s.Listener != "" && s.Host != "" {
				r.maps.of(s.Source, func() { r.maps.line("%s %s;", key(s.Host), expanded(s.Listener)) })
			}
		}
	})
	return name
}

// server writes one server. connection has the Listener that a connection was made for.
func (r *renderer) server(w *writer, s Server, connection string) {
	w.of(s.Source, func() {
		w.line("# %s", s.Source)
		w.block("server", func() {
			r.listen(w, s)
			if s.Host != "" {
				w.line("server_name %s;", fixed(s.Host))
			}
			w.line("if ($looped) { return 508; }")
			if s.TLS && s.Listener != "" {
				w.line("if ($%s != %s) { return 421; }", connection, expanded(s.Listener))
			}
			l := locations{renderer: r, w: w, server: s, seen: map[string]bool{}, bodies: map[string]string{}, choices: map[string]*choice{}}
			for _, one := range s.Locations {
				if one.Match == Exact {
					l.add("= "+fixed(one.Path), one)
				}
			}
			for _, one := range s.Locations {
				l.inexact(one)
			}
			l.add("/", Location{Path: "/"})
			if l.none {
				w.line("location @none { return 404; }")
			}
			l.writeChoices()
		})
	})
}

// listen writes where a server listens. There is no reuseport: with it, connections that wait for
// a worker are lost when that worker ends.
func (r *renderer) listen(w *writer, s Server) {
	var more string
	if s.TLS {
		more += " ssl"
		if !r.options.HTTP2On {
			more += " http2"
		}
	}
	if s.Host == "" {
		more += " default_server"
	}
	at, err := netip.ParseAddr(s.Address)
	switch {
	case err == nil:
		w.line("listen %s%s;", netip.AddrPortFrom(at.WithZone(""), uint16(s.Port)), more)
	case r.options.IPv6:
		w.line("listen [::]:%d%s;", s.Port, more)
		fallthrough
	default:
		w.line("listen %d%s;", s.Port, more)
	}
	if !s.TLS {
		return
	}
	if r.options.HTTP2On {
		w.line("http2 on;")
	}
	certificate, ok := r.config.Certificates[s.Certificate]
	if !ok {
		w.line("ssl_reject_handshake on;")
		return
	}
	w.of(certificate.Source, func() {
		w.line("ssl_certificate %s;", fixed(certificate.file()))
		w.line("ssl_certificate_key %s;", fixed(certificate.file()))
	})
}

// locations are those of one server.
type locations struct {
	*renderer
	w       *writer
	server  Server
	seen    map[string]bool
	none    bool               // some requests meet no conditions
	bodies  map[string]string  // names of named locations, by what is in them
	choices map[string]*choice // by namespace and value
}

// inexact adds a prefix, or a regular expression. Prefixes are by elements, which nginx' own are
// not: so they are two locations.
func (l *locations) inexact(one Location) {
	switch one.Match {
	case Prefix:
		path := strings.TrimRight(one.Path, "/")
		if path != "" {
			l.add("= "+fixed(path), Location{Path: path, Rules: one.Rules})
		}
		l.add(prefixOf(path), Location{Path: path + "/", Rules: one.Rules})
	case Regex:
		if pattern, err := regex(one.Path); err == nil {
			l.add("~ "+fixed(bounded+"^"+except(one.Except)+pattern), one)
		}
	}
}

// except begins a regular expression that matches nothing below these prefixes.
func except(prefixes []string) string {
	var out strings.Builder
	for _, prefix := range prefixes {
		out.WriteString("(?!" + exactly(strings.TrimRight(prefix, "/")) + `(?:/|\z))`)
	}
	return out.String()
}

func prefixOf(path string) string {
	if path == "" {
		return "/"
	}
	return fixed(path + "/")
}

// add adds a location, unless there is one already. Where one thing becomes of all its requests,
// it stands there. Otherwise each request goes on to the named location of its rule and backend.
func (l *locations) add(head string, one Location) {
	if l.seen[head] || one.Match != Regex && !strings.HasPrefix(one.Path, "/") {
		return
	}
	l.seen[head] = true
	if len(one.Rules) == 0 {
		l.w.line("location %s { return 404; }", head)
		return
	}
	if first := one.Rules[0]; len(first.Conditions) == 0 {
		if shares := l.shares(first); len(shares) == 1 {
			l.w.of(first.Source, func() {
				l.w.line("location %s { # %s", head, first.Source)
				l.w.depth++
				shares[0].write()
				l.w.depth--
				l.w.line("}")
			})
			return
		}
	}
	target := l.targets(one.Rules)
	l.w.of(one.Rules[0].Source, func() { // the path is that of its first rule
		l.w.block("location "+head, func() {
			l.w.line("error_page 418 = %s;", target)
			l.w.line("return 418;")
		})
	})
}
