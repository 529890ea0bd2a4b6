package translate

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

var errIncompatible = errors.New("filters RequestRedirect and URLRewrite cannot be used together")

// filter adds what the filters of a rule, or of a backend, do. The error says which ones cannot be
// served.
func filter(rule *nginx.Rule, filters []gatewayv1.HTTPRouteFilter) error {
	var all []error
	had := map[gatewayv1.HTTPRouteFilterType]bool{}
	for i := range filters {
		f := &filters[i]
		if had[f.Type] {
			all = append(all, fmt.Errorf("filter %s stands there twice", f.Type))
			continue
		}
		had[f.Type] = true
		all = append(all, addFilter(rule, f))
	}
	if rule.Redirect != nil && rule.Rewrite != nil {
		all = append(all, errIncompatible)
	}
	return errors.Join(all...)
}

func addFilter(rule *nginx.Rule, f *gatewayv1.HTTPRouteFilter) (err error) {
	switch {
	case f.Type == gatewayv1.HTTPRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil:
		rule.RequestHeaders, err = headers(f.RequestHeaderModifier)
	case f.Type == gatewayv1.HTTPRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil:
		rule.ResponseHeaders, err = headers(f.ResponseHeaderModifier)
	case f.Type == gatewayv1.HTTPRouteFilterRequestRedirect && f.RequestRedirect != nil:
		rule.Redirect, err = redirect(f.RequestRedirect)
	case f.Type == gatewayv1.HTTPRouteFilterURLRewrite && f.URLRewrite != nil:
		rule.Rewrite, err = rewrite(f.URLRewrite)
	default:
		err = fmt.Errorf("filter %s is not served, or has no settings", f.Type)
	}
	return err
}

// headers reads changes of headers.
func headers(of *gatewayv1.HTTPHeaderFilter) (c nginx.HeaderChanges, err error) {
	values := func(all []gatewayv1.HTTPHeader) (to []nginx.HeaderValue) {
		for _, h := range all {
			control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
			if !token.MatchString(string(h.Name)) || strings.ContainsFunc(h.Value, control) {
				err = fmt.Errorf("header %q has no valid name or value", h.Name)
				continue
			}
			to = append(to, nginx.HeaderValue{Name: string(h.Name), Value: h.Value})
		}
		return to
	}
	c.Set, c.Add = values(of.Set), values(of.Add)
	for _, h := range of.Remove {
		if !token.MatchString(h) {
			err = fmt.Errorf("header %q has no valid name", h)
			continue
		}
		c.Remove = append(c.Remove, h)
	}
	return c, err
}

// redirect reads a redirect.
func redirect(of *gatewayv1.HTTPRequestRedirectFilter) (*nginx.Redirect, error) {
	to := &nginx.Redirect{
		Status: ptr.Deref(of.StatusCode, http.StatusFound), Scheme: ptr.Deref(of.Scheme, ""),
		Host: string(ptr.Deref(of.Hostname, "")), Port: int(ptr.Deref(of.Port, 0)),
	}
	switch to.Status {
	case 301, 302, 303, 307, 308:
	default:
		return nil, fmt.Errorf("status %d is none of a redirect", to.Status)
	}
	switch to.Scheme {
	case "", "http", "https":
	default:
		return nil, fmt.Errorf("scheme %q is not served", to.Scheme)
	}
	if to.Host != "" && !validHostname(to.Host) {
		return nil, fmt.Errorf("hostname %q is not valid", to.Host)
	}
	var err error
	to.Path, err = pathChange(of.Path)
	return to, err
}

// rewrite reads what an endpoint is asked for.
func rewrite(of *gatewayv1.HTTPURLRewriteFilter) (*nginx.Rewrite, error) {
	to := &nginx.Rewrite{Host: string(ptr.Deref(of.Hostname, ""))}
	if to.Host != "" && !validHostname(to.Host) {
		return nil, fmt.Errorf("hostname %q is not valid", to.Host)
	}
	var err error
	to.Path, err = pathChange(of.Path)
	return to, err
}

func pathChange(of *gatewayv1.HTTPPathModifier) (*nginx.PathChange, error) {
	switch {
	case of == nil:
		return nil, nil
	case of.Type == gatewayv1.FullPathHTTPPathModifier && of.ReplaceFullPath != nil:
		return &nginx.PathChange{Full: true, To: *of.ReplaceFullPath}, nil
	case of.Type == gatewayv1.PrefixMatchHTTPPathModifier && of.ReplacePrefixMatch != nil:
		return &nginx.PathChange{To: *of.ReplacePrefixMatch}, nil
	}
	return nil, fmt.Errorf("path of type %q is not served, or has no value", of.Type)
}

// replacesPrefix reports whether a rule needs the prefix that it has matched.
func replacesPrefix(rule *nginx.Rule) bool {
	return rule.Redirect != nil && rule.Redirect.Path != nil && !rule.Redirect.Path.Full ||
		rule.Rewrite != nil && rule.Rewrite.Path != nil && !rule.Rewrite.Path.Full
}
