"""Writes work.pl: SIZE facts with atoms of their own, asserted, queried and retracted."""
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])
with open("work.pl", "w") as file:
    file.write(":- dynamic edge/3.\n:- dynamic state/1.\nstate(%d).\n" % seed)
    file.write('''draw(Below, Drawn) :-
    nb_getval(state, State),
    Next is (State * 1103515245 + 12345) mod 2147483648,
    nb_setval(state, Next),
    Drawn is Next // 65536 mod Below.

fill(Size) :-
    forall(between(1, Size, At),
           ( draw(5000, From), draw(5000, To),
             atomic_list_concat([node, From], A), atomic_list_concat([node, To], B),
             format(atom(Label), 'label ~d of ~d', [At, From]),
             assertz(edge(A, B, Label)) )).

work(Size) :-
    state(Seed), nb_setval(state, Seed),
    fill(Size),
    findall(A-C, (edge(A, B, _), edge(B, C, _)), Pairs),
    sort(Pairs, Sorted), length(Sorted, Count),
    findall(Length, (edge(_, _, Label), atom_length(Label, Length)), Lengths),
    sum_list(Lengths, Sum),
    forall((edge(A, B, Label), sub_atom(Label, _, 1, 0, '1')), retract(edge(A, B, Label))),
    aggregate_all(count, edge(_, _, _), Rest),
    format("~d ~d ~d~n", [Count, Sum, Rest]).
''')
    file.write("main :- work(%d), halt.\n" % size)
