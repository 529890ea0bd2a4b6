package nginx

import (
	"fmt"
	"net/url"
	"strings"
)

// condition returns a variable and a number, which are equal if a request meets the condition. It
// reports whether one can. A header or parameter that is missing, or empty, meets none: nginx tries
// no pattern on an empty text.
func (l *locations) condition(source Object, c Condition) (equal string, possible bool) {
	pattern, err := exactly(c.Value), error(nil)
	if c.Regex {
		pattern, err = regex(c.Value)
	}
	value, several := `"$request_method"`, c.Regex
	switch c.Kind {
	case Header:
		value = sent(c.Name)
	case Query:
		value = l.parameter(source, c.Name)
		if !c.Regex {
			pattern = encoded(c.Value)
			several = strings.ContainsAny(c.Value, "+%") // + stands for a space, too, and %41 for A
		}
	}
	if err != nil || value == "" {
		return "", false
	}
	pattern = `^(?:` + pattern + `)\z`
	if several { // one value may meet several of these
		if c.Regex {
			pattern = bounded + pattern
		}
		return "$" + l.variable("met", source, "map "+value, "default 0;", fixed("~"+pattern)+" 1;") + "=1", true
	}
	name, n := l.number(source, value, pattern)
	return fmt.Sprintf("$%s=%d", name, n), true
}

// parameter returns a variable with the first value of a parameter, as it stands in the URL.
func (r *renderer) parameter(source Object, name string) string {
	value := r.capture("value", name)
	return `"$` + r.variable("parameter", source, `map "$args"`, `default "";`,
		fixed("~(?:^|&)"+encoded(name)+"=(?<"+value+">[^&]*)")+" $"+value+";") + `"`
}

// capture returns the name of a group in a regular expression: a variable for what it matches.
func (r *renderer) capture(kind, of string) string {
	key := kind + " " + of
	if _, ok := r.names[key]; !ok {
		r.names[key] = fmt.Sprintf("%s%d", kind, len(r.names)+1)
	}
	return r.names[key]
}

// share is a part of the requests that a rule takes, and what writes what becomes of them.
type share struct {
	hundredths int64 // of a percent
	write      func()
}

// shares returns the parts of a rule's requests. There is at least one.
func (l *locations) shares(rule Rule) (all []share) {
	whole := func(write func()) []share { return []share{{10000, write}} }
	var total, sum, given int64
	for _, b := range rule.Backends {
		total += int64(max(0, b.Weight))
	}
	switch {
	case rule.Redirect != nil:
		return whole(func() { l.redirect(rule) })
	case rule.Status != 0:
		return whole(func() { l.answer(rule, rule.Status) })
	case total == 0:
		return whole(func() { l.answer(rule, 500) })
	}
	for _, b := range rule.Backends {
		sum += int64(max(0, b.Weight))
		upTo := (sum*10000 + total/2) / total
		if upTo > given { // nginx takes no smaller shares
			all = append(all, share{upTo - given, func() { l.backend(rule, b) }})
		}
		given = upTo
	}
	return all
}

// target returns the named location of a rule, or a variable that has the one of a backend.
func (l *locations) target(rule Rule) string {
	shares := l.shares(rule)
	var lines []string
	var name string
	for i, one := range shares {
		name = l.body(rule, one.write)
		part := fmt.Sprintf("%d.%02d%%", one.hundredths/100, one.hundredths%100)
		if i == len(shares)-1 {
			part = "*"
		}
		lines = append(lines, fmt.Sprintf("%s %q;", part, name))
	}
	if len(lines) == 1 {
		return name
	}
	return "$" + l.variable("backend", rule.Source, `split_clients "$request_id"`, lines...)
}

// body writes a named location, unless the server has the same one already.
func (l *locations) body(rule Rule, write func()) string {
	outer := l.w
	inner := writer{depth: outer.depth + 1}
	l.w = &inner
	inner.of(rule.Source, write)
	l.w = outer
	key := rule.Source.String() + inner.text()
	if name, ok := l.bodies[key]; ok {
		return name
	}
	l.renderer.bodies++
	name := fmt.Sprintf("@r%d", l.renderer.bodies)
	l.bodies[key] = name
	outer.of(rule.Source, func() {
		outer.line("location %s { # %s", name, rule.Source)
		outer.append(&inner)
		outer.line("}")
	})
	return name
}

// answer answers by itself.
func (l *locations) answer(rule Rule, status int) {
	if status < 200 || status > 599 {
		status = 500
	}
	l.responses(rule.ResponseHeaders)
	l.w.line("return %d;", status)
}

func (l *locations) responses(changes ...HeaderChanges) {
	var all fields
	for _, c := range changes {
		all.change(c, func(string) string { return "kept" })
	}
	l.responseHeaders(l.w, all)
}

// backend asks an endpoint.
func (l *locations) backend(rule Rule, b Backend) {
	if b.Upstream == "" {
		l.answer(rule, 500)
		return
	}
	w := l.w
	if !l.options.Lua && len(l.endpoints(b.Upstream)) == 0 {
		l.answer(rule, 503)
		return
	}
	if rule.Timeout > 0 {
		w.line("proxy_read_timeout %s;", duration(rule.Timeout, 0))
		w.line("proxy_send_timeout %s;", duration(rule.Timeout, 0))
		w.line("proxy_next_upstream_timeout %s;", duration(rule.Timeout, 0))
	}
	headers := l.proxied()
	if rule.Rewrite != nil && rule.Rewrite.Host != "" {
		headers.of("Host", "").was = expanded(rule.Rewrite.Host)
	}
	headers.change(rule.RequestHeaders, sent)
	headers.change(b.RequestHeaders, sent)
	if changed(rule, b) {
		l.requestHeaders(w, headers)
	}
	l.responses(rule.ResponseHeaders, b.ResponseHeaders)
	if l.options.Lua {
		w.line("set $upstream %s;", fixed(nameOf(b.Upstream)))
	}
	if rule.Rewrite != nil && rule.Rewrite.Path != nil {
		l.rewrite(rule) // last: nothing is set after it
	}
	if l.options.Lua {
		w.line("access_by_lua_block { gateway.choose() }")
		w.line("proxy_pass http://endpoints;")
		return
	}
	w.line("proxy_pass http://%s;", staticName(b.Upstream))
}

// changed reports whether requests for a backend have other headers than those of all servers.
func changed(rule Rule, b Backend) bool {
	var all fields
	all.change(rule.RequestHeaders, sent)
	all.change(b.RequestHeaders, sent)
	return len(all) > 0 || rule.Rewrite != nil && rule.Rewrite.Host != ""
}

// rewrite changes the path. The text stands in a variable: in the directive itself, a question
// mark would begin a query.
func (l *locations) rewrite(rule Rule) {
	to := rule.Rewrite.Path.To
	if plain, err := url.PathUnescape(to); err == nil {
		to = plain
	}
	if rule.Rewrite.Path.Full {
		l.w.line("set $path %s;", expanded("/"+strings.TrimLeft(to, "/")))
		l.w.line("rewrite ^ $path break;")
		return
	}
	prefix := exactly(strings.TrimRight(rule.MatchedPrefix, "/"))
	if to = strings.Trim(to, "/"); to == "" {
		l.w.line("rewrite %s /$1 break;", fixed("(?s)^"+prefix+"/?(.*)$"))
		return
	}
	l.w.line("set $path %s;", expanded("/"+to))
	l.w.line("rewrite %s $path$1 break;", fixed("(?s)^"+prefix+"(.*)$"))
}

// redirect answers with another location. What is kept of the path is as the client has sent it.
func (l *locations) redirect(rule Rule) {
	to := rule.Redirect
	scheme, host := "$scheme", "$host"
	if to.Scheme != "" {
		scheme = unquoted(to.Scheme)
	}
	if to.Host != "" {
		host = unquoted(to.Host)
	}
	l.responses(rule.ResponseHeaders)
	path := "$asked_path"
	if change := to.Path; change != nil && change.Full {
		path = unquoted("/" + strings.TrimLeft(escapedPath(change.To), "/"))
	} else if change != nil {
		name := l.replaced(rule, change.To)
		l.w.line(`if ($%s = "") { return 400; } # such a path has no such prefix as it was sent`, name)
		path = "$" + name
	}
	status := to.Status
	if status < 301 || status > 308 {
		status = 302
	}
	l.w.line(`return %d "%s://%s%s%s$is_args$args";`, status, scheme, host, l.port(to), path)
}

// port returns what stands after the host in a redirect.
func (l *locations) port(to *Redirect) string {
	secure := l.server.TLS
	if to.Scheme != "" {
		secure = strings.EqualFold(to.Scheme, "https")
	}
	switch {
	case to.Port == 0 && to.Scheme == "":
		return "$asked_port"
	case to.Port == 0, secure && to.Port == 443, !secure && to.Port == 80:
		return ""
	}
	return fmt.Sprintf(":%d", to.Port)
}

// replaced returns a variable with the path of the request, with another prefix.
func (l *locations) replaced(rule Rule, to string) string {
	prefix := encoded(strings.TrimRight(rule.MatchedPrefix, "/"))
	to = strings.Trim(escapedPath(to), "/")
	if to != "" {
		to = "/" + to
	}
	rest := l.capture("rest", prefix+" "+to)
	lines := []string{`default "";`}
	if to == "" {
		lines = append(lines, fixed("~^"+prefix+`\z`)+` "/";`)
	}
	lines = append(lines, fixed("~^"+prefix+"(?<"+rest+`>(?:/|%2[fF]).*)?\z`)+` "`+unquoted(to)+"$"+rest+`";`)
	return l.variable("replaced", rule.Source, `map "$asked_path"`, lines...)
}

// unquoted is expanded without its quotes: a part of a longer text.
func unquoted(s string) string {
	s = expanded(s)
	return s[1 : len(s)-1]
}

// escapedPath is a path for a URL. What is percent-encoded stays as it is.
func escapedPath(path string) string {
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	return (&url.URL{Path: path}).EscapedPath()
}
