package kates

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/kates-go/kates/internal/base/guard"
	"github.com/kates-go/kates/internal/base/plain"
	"github.com/kates-go/kates/internal/client/compile"
	"github.com/kates-go/kates/internal/engine/query"
)

// alterable is a watch whose queries change while it runs. It remembers them as they were given.
type alterable interface {
	Add(ctx context.Context, queries []compile.Wanted) error
	Replace(ctx context.Context, queries []compile.Wanted) error
	// Given is what a query was made of, nil if there is none of that name.
	Given(name string) *query.Given
	// MayHave returns an error if there is never a query of that name.
	MayHave(name string) error
}

func addQueries(ctx context.Context, w alterable, queries []Query) error {
	return plain.While("add", w.Add(ctx, wantedOf(queries)))
}

func replaceQueries(ctx context.Context, w alterable, queries []Query) error {
	return plain.While("replace", w.Replace(ctx, wantedOf(queries)))
}

// changeQuery replaces a query by what a function makes of it. What takes the place of the query
// while the function runs stays: the function is called again, with that.
func changeQuery(ctx context.Context, w alterable, name string, change func(*Query)) error {
	for {
		err := changeOnce(ctx, w, name, change)
		if errors.Is(err, query.ErrOvertaken) {
			if err = ctx.Err(); err == nil {
				continue
			}
		}
		return plain.While("change", withPanic(err))
	}
}

func changeOnce(ctx context.Context, w alterable, name string, change func(*Query)) error {
	q := Query{Name: name}
	fail := func(err error) error { return query.Query{Name: name}.Error(err) }
	if change == nil {
		return fail(errors.New("the function that is to change it is nil"))
	}
	if err := w.MayHave(name); err != nil {
		return err
	}
	given := w.Given(name)
	if given == nil {
		return fail(query.ErrUnknownQuery)
	}
	if as, written := given.As.(Query); written {
		q = as.clone()
	}
	if err := guard.Named("the function that changes it panicked", func() error {
		change(&q)
		return nil
	}); err != nil {
		return fail(err)
	}
	if q.Name != name {
		return fail(fmt.Errorf("the function has changed its name to %q", q.Name))
	}
	wanted := wantedOf([]Query{q})
	wanted[0].After = given
	return w.Replace(ctx, wanted)
}

// altered is a watch whose queries are compiled one by one.
type altered struct {
	compiler *compile.Compiler
	typ      reflect.Type // of the struct that says the queries' kinds, nil without one
	watch    interface {
		Add(ctx context.Context, queries ...query.Query) error
		Replace(ctx context.Context, queries ...query.Query) error
		Given(name string) *query.Given
	}
}

// Add implements [alterable].
func (a altered) Add(ctx context.Context, queries []compile.Wanted) error {
	return a.compiled(ctx, queries, a.watch.Add)
}

// Replace implements [alterable].
func (a altered) Replace(ctx context.Context, queries []compile.Wanted) error {
	return a.compiled(ctx, queries, a.watch.Replace)
}

func (a altered) compiled(ctx context.Context, queries []compile.Wanted, do func(context.Context, ...query.Query) error) error {
	var all []query.Query
	var err error
	if a.typ == nil {
		all, err = a.compiler.All(queries)
	} else {
		all, err = a.compiler.AtRunTime(ctx, compile.Struct{Reports: reports}, a.typ, queries)
	}
	if err != nil {
		return err
	}
	return do(ctx, all...)
}

// Given implements [alterable].
func (a altered) Given(name string) *query.Given { return a.watch.Given(name) }

// MayHave implements [alterable].
func (a altered) MayHave(name string) error {
	if a.typ == nil {
		return nil
	}
	return (&compile.Struct{Reports: reports}).MayHave(name, a.typ)
}
