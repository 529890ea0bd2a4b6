package source

import (
	"fmt"

	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/internal/doors"
	"github.com/kates-go/kates/kates"
)

// Watches is the need of sources in the cluster whose objects they read: see [kates.Rules]. Give
// it to the Rules for that cluster. Sources that read files need nothing. A source of another
// package is an error of Rules, unless it has a method Needs() []kates.Need.
//
// What [FluxOptions].Providers do is not known here. [ServiceAccountTokens] needs
//
//	kates.Uses(&corev1.ServiceAccount{}, kates.CanCreate.Of("token"))
func Watches(sources ...fleet.Source) kates.Need {
	var all []kates.Need
	for _, s := range sources {
		of, ok := s.(interface{ Needs() []kates.Need })
		if !ok {
			return failed(fmt.Errorf("source %v: it does not say what it needs", s))
		}
		all = append(all, of.Needs()...)
	}
	return doors.Need(all, nil).(kates.Need)
}

func failed(err error) kates.Need { return doors.Need([]kates.Need(nil), err).(kates.Need) }

// Needs are those of [Watches].
func (h *home[S]) Needs() []kates.Need {
	options := make([]kates.RunOption, len(h.queries))
	for i, q := range h.queries {
		options[i] = q
	}
	return []kates.Need{kates.Watches[S](options...)}
}

// Needs are none: contexts are those of a file.
func (s *contextSource) Needs() []kates.Need { return nil }

// Needs are none.
func (d *directory) Needs() []kates.Need { return nil }

// Needs is why there is no such source.
func (b broken) Needs() []kates.Need {
	return []kates.Need{failed(fmt.Errorf("source %s: %w", b.name, b.err))}
}
