"""aiohttp: a customer's orders, from PostgreSQL, as JSON."""
import random
import sys

import asyncpg
from aiohttp import web

CUSTOMERS = 4000


async def orders(request):
    rows = await request.app["db"].fetch("select id, item, price from orders where customer = $1", random.randrange(CUSTOMERS))
    return web.json_response([{"id": r["id"], "item": r["item"], "price": r["price"]} for r in rows])


async def connect(app):
    app["db"] = await asyncpg.create_pool(host="127.0.0.1", port=int(sys.argv[2]), user="postgres", min_size=4, max_size=4)


app = web.Application()
app.on_startup.append(connect)
app.add_routes([web.get("/", orders)])
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None)
