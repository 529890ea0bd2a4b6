package translate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// routeMatch is one of the matches of a rule.
type routeMatch struct {
	match      nginx.PathMatch
	path       string
	conditions []nginx.Condition
}

// token is what the name of a header or a method must be.
var token = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// matchesOf reads the matches of a rule. None is one of all requests. Those that cannot be served
// are left out, and the error says why.
func matchesOf(of []gatewayv1.HTTPRouteMatch) (all []routeMatch, err error) {
	if len(of) == 0 {
		of = make([]gatewayv1.HTTPRouteMatch, 1)
	}
	for i := range of {
		m, why := matchOf(&of[i])
		if why != nil {
			err = errors.Join(err, why)
			continue
		}
		all = append(all, m)
	}
	return all, err
}

func matchOf(of *gatewayv1.HTTPRouteMatch) (m routeMatch, err error) {
	if m.match, m.path, err = pathOf(of.Path); err != nil {
		return m, err
	}
	if of.Method != nil {
		err = m.add(nginx.Condition{Kind: nginx.Method, Value: string(*of.Method)}, "Exact")
		if !token.MatchString(string(*of.Method)) {
			err = fmt.Errorf("method %q is none", *of.Method)
		}
	}
	for _, h := range of.Headers {
		c := nginx.Condition{Kind: nginx.Header, Name: string(h.Name), Value: h.Value}
		err = errors.Join(err, m.add(c, string(ptr.Deref(h.Type, gatewayv1.HeaderMatchExact))))
	}
	for _, q := range of.QueryParams {
		c := nginx.Condition{Kind: nginx.Query, Name: string(q.Name), Value: q.Value}
		err = errors.Join(err, m.add(c, string(ptr.Deref(q.Type, gatewayv1.QueryParamMatchExact))))
	}
	return m, err
}

// add adds a condition. Of two on the same header or parameter, the first one counts.
func (m *routeMatch) add(c nginx.Condition, how string) error {
	for _, had := range m.conditions {
		same := had.Name == c.Name || c.Kind == nginx.Header && strings.EqualFold(had.Name, c.Name)
		if had.Kind == c.Kind && same {
			return nil
		}
	}
	if c.Kind != nginx.Method && !token.MatchString(c.Name) {
		return fmt.Errorf("%s %q has no valid name", strings.ToLower(string(c.Kind)), c.Name)
	}
	switch how {
	case "Exact":
	case "RegularExpression":
		if err := nginx.CheckRegex(c.Value); err != nil {
			return fmt.Errorf("%s %q: %w", strings.ToLower(string(c.Kind)), c.Name, err)
		}
		c.Regex = true
	default:
		return fmt.Errorf("matches of type %q are not served", how)
	}
	m.conditions = append(m.conditions, c)
	return nil
}

// pathOf reads the match of a path. For a regular expression see nginx.CheckRegex.
func pathOf(of *gatewayv1.HTTPPathMatch) (match nginx.PathMatch, path string, err error) {
	if of == nil {
		return nginx.Prefix, "/", nil
	}
	path = ptr.Deref(of.Value, "/")
	kinds := map[gatewayv1.PathMatchType]nginx.PathMatch{
		gatewayv1.PathMatchExact:             nginx.Exact,
		gatewayv1.PathMatchPathPrefix:        nginx.Prefix,
		gatewayv1.PathMatchRegularExpression: nginx.Regex,
	}
	kind := ptr.Deref(of.Type, gatewayv1.PathMatchPathPrefix)
	match, known := kinds[kind]
	if !known {
		return "", "", fmt.Errorf("paths of type %q are not served", kind)
	}
	same, err := pathText(match, path)
	if err != nil {
		return "", "", fmt.Errorf("path %q: %w", path, err)
	}
	return match, same, nil
}
