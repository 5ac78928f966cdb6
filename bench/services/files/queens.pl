% /hello is a small answer, /queens places queens on a board of which none attacks another.
:- use_module(library(http/thread_httpd)).
:- use_module(library(http/http_dispatch)).

:- http_handler(root(hello), hello, []).
:- http_handler(root(queens), place, []).

:- initialization(main, main).

main([Text]) :-
    atom_number(Text, Port),
    http_server(http_dispatch, [port('127.0.0.1':Port), workers(16)]),
    thread_get_message(quit).

hello(_) :-
    format("Content-type: text/plain~n~nhello~n").

place(_) :-
    numlist(1, 19, Rows),
    queens(Rows, [], Board),
    format("Content-type: text/plain~n~n~w~n", [Board]).

queens([], Board, Board).
queens(Rows, Placed, Board) :-
    select(Row, Rows, Others),
    safe(Placed, Row, 1),
    queens(Others, [Row|Placed], Board).

safe([], _, _).
safe([Other|Placed], Row, Distance) :-
    Row =\= Other + Distance,
    Row =\= Other - Distance,
    Next is Distance + 1,
    safe(Placed, Row, Next).
