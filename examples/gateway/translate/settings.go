package translate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kates-go/kates/examples/gateway/nginx"
)

// defaults are the settings that a ConfigMap does not name.
func defaults() nginx.Settings {
	return nginx.Settings{
		Connections: 16384, MaxBodyBytes: 1 << 20,
		ConnectTimeout: 5 * time.Second, ReadTimeout: time.Minute,
		KeepAlive: 75 * time.Second, DrainTimeout: 4 * time.Minute,
		AccessLog: true, ProxyHeaders: true, RetryEndpoints: 3, KeepConnections: 64,
	}
}

// keys are those of the ConfigMap of settings.
var keys = map[string]func(s *nginx.Settings, value string) error{
	"workers":          func(s *nginx.Settings, v string) error { return integer(&s.Workers, v, 0, 1024) },
	"connections":      func(s *nginx.Settings, v string) error { return integer(&s.Connections, v, 64, 1<<20) },
	"max-body-size":    func(s *nginx.Settings, v string) error { return size(&s.MaxBodyBytes, v) },
	"connect-timeout":  func(s *nginx.Settings, v string) error { return duration(&s.ConnectTimeout, v) },
	"read-timeout":     func(s *nginx.Settings, v string) error { return duration(&s.ReadTimeout, v) },
	"keep-alive":       func(s *nginx.Settings, v string) error { return duration(&s.KeepAlive, v) },
	"drain-timeout":    func(s *nginx.Settings, v string) error { return duration(&s.DrainTimeout, v) },
	"access-log":       func(s *nginx.Settings, v string) error { return boolean(&s.AccessLog, v) },
	"server-tokens":    func(s *nginx.Settings, v string) error { return boolean(&s.ServerTokens, v) },
	"proxy-headers":    func(s *nginx.Settings, v string) error { return boolean(&s.ProxyHeaders, v) },
	"retry-endpoints":  func(s *nginx.Settings, v string) error { return integer(&s.RetryEndpoints, v, 1, 10) },
	"keep-connections": func(s *nginx.Settings, v string) error { return integer(&s.KeepConnections, v, 0, 10000) },
}

// settingsMap reads the ConfigMap of settings. A mistake is a problem of the ConfigMap; what else
// it says counts.
func (t *translation) settingsMap(_ key, from *corev1.ConfigMap) (*fragment, error) {
	scratch := defaults()
	t.apply(&scratch, from)
	return &fragment{object: from, notes: t.notes}, nil
}

// allSettings are those of all ConfigMaps of settings, of which there is one at most.
func (t *translation) allSettings() (nginx.Settings, error) {
	all := defaults()
	for _, from := range t.configMaps.All(t.r) {
		t.apply(&all, from)
	}
	return all, nil
}

func (t *translation) apply(to *nginx.Settings, from *corev1.ConfigMap) {
	for _, key := range slices.Sorted(maps.Keys(from.Data)) {
		set := keys[key]
		if set == nil {
			t.problem(from, "UnknownSetting", "there is no setting %q", key)
			continue
		}
		if err := set(to, from.Data[key]); err != nil {
			t.problem(from, "InvalidSetting", "%s: %v; the default stays", key, err)
		}
	}
}

func integer(into *int, value string, least, most int) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		return fmt.Errorf("%q is no number from %d to %d", value, least, most)
	}
	*into = n
	return nil
}

func boolean(into *bool, value string) error {
	if value != "true" && value != "false" {
		return fmt.Errorf(`%q is neither "true" nor "false"`, value)
	}
	*into = value == "true"
	return nil
}

// duration is from a millisecond, which is nginx' unit, to a day.
func duration(into *time.Duration, value string) error {
	d, err := time.ParseDuration(value)
	if err != nil || d < time.Millisecond || d > 24*time.Hour {
		return fmt.Errorf("%q is no duration from 1ms to 24h, such as 30s", value)
	}
	*into = d
	return nil
}

// size is a quantity of the Kubernetes API. In these 8m is 8/1000, and not what it is to nginx.
func size(into *int64, value string) error {
	bad := fmt.Errorf("%q is no number of bytes, such as 8Mi; 0 is no limit", value)
	q, err := resource.ParseQuantity(value)
	if err != nil {
		return bad
	}
	n, whole := q.AsInt64()
	if !whole || n < 0 {
		return bad
	}
	*into = n
	return nil
}
